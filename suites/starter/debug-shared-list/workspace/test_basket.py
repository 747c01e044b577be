import unittest
from basket import Basket


class BasketTest(unittest.TestCase):
    def test_apart(self):
        a, b = Basket(), Basket()
        a.add("apple")
        self.assertEqual(b.items, [])
