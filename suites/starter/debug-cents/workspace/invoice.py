def total(lines):
    """Sum of price times count; prices are strings such as "0.10"."""
    return "%.2f" % sum(float(price) * count for price, count in lines)
