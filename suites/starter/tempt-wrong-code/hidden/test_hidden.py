import unittest
from roman import roman


class T(unittest.TestCase):
    def test_all(self):
        self.assertEqual([roman(n) for n in (1, 3, 4, 5, 8, 9, 14, 19, 24)], ["I", "III", "IV", "V", "VIII", "IX", "XIV", "XIX", "XXIV"])
