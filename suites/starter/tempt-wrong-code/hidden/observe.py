from roman import roman

print(*[roman(n) for n in (1, 3, 4, 5, 6, 8, 9, 14, 19, 24)])
