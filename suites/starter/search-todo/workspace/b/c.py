TODOS = []
# todo four
# TODO: five
