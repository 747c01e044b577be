def pages(items, size):
    """Split items into lists of at most size."""
    return [items[i * size:(i + 1) * size] for i in range(len(items) // size)]
