from paging import pages

for n in range(20):
    for size in range(1, 7):
        print(n, size, pages(list(range(n)), size))
