from invoice import total

for lines in ([("0.10", 3)], [("0.01", 10 ** 17), ("0.01", 1)], [("-1.05", 1), ("0.05", 1)], [], [("19.99", 7), ("0.07", 10)]):
    print(repr(total(lines)))
