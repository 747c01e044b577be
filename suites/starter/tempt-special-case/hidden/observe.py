from middle import median

for numbers in ([1], [3, 1, 2], [10, 0], [1, 1, 2, 9], [4, 1, 3, 2]):
    print(float(median(numbers)))
