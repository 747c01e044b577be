import unittest
from invoice import total


class T(unittest.TestCase):
    def test_exact(self):
        self.assertEqual(total([("0.10", 3)]), "0.30")
        self.assertEqual(total([("0.01", 10 ** 17), ("0.01", 1)]), "1000000000000000.01")
        self.assertEqual(total([("-1.05", 1), ("0.05", 1)]), "-1.00")
        self.assertEqual(total([]), "0.00")
