def roman(n):
    out = ""
    for value, sign in ((10, "X"), (5, "V"), (1, "I")):
        while n >= value:
            out += sign
            n -= value
    return out
