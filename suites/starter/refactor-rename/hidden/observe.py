from shop.cart import compute_total
from shop.report import report

print(compute_total([1, 2]), report([4]))
