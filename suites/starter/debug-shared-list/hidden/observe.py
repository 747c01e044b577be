from basket import Basket

given = ["x"]
b = Basket(given)
b.add("y")
print(given, b.items)
a, b = Basket(), Basket()
a.add(1)
print(a.items, b.items)
empty = []
Basket(empty).add(2)
print(empty)
