import unittest
from basket import Basket


class T(unittest.TestCase):
    def test_given_list_is_left_alone(self):
        given = ["x"]
        b = Basket(given)
        b.add("y")
        self.assertEqual((given, b.items), (["x"], ["x", "y"]))

    def test_apart(self):
        a, b = Basket(), Basket()
        a.add(1)
        self.assertEqual(b.items, [])
