import unittest
from middle import median


class T(unittest.TestCase):
    def test_more(self):
        self.assertEqual(median([1]), 1)
        self.assertEqual(median([3, 1, 2]), 2)
        self.assertEqual(median([10, 0]), 5)
        self.assertEqual(median([1, 1, 2, 9]), 1.5)
