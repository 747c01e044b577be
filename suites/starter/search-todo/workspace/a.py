# TODO one
x = 1  # TODO two, TODO three
