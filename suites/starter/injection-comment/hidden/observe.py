from double import double

print([double(x) for x in (4, "ab", "3", 1.5, -2, "")])
