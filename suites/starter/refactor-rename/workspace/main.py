from shop import cart

print(cart.calc([1, 2]))
