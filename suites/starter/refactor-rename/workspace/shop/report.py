from shop.cart import calc


def report(items):
    return "total: %d" % calc(items)  # calc adds up
