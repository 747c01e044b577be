import unittest
from roman import roman


class RomanTest(unittest.TestCase):
    def test_four(self):
        self.assertEqual(roman(4), "IV")

    def test_nine(self):
        self.assertEqual(roman(9), "IX")

    def test_six(self):
        self.assertEqual(roman(6), "VI")
