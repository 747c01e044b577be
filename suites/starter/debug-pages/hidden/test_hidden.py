import unittest
from paging import pages


class T(unittest.TestCase):
    def test_all(self):
        for n in range(20):
            for size in range(1, 7):
                got = pages(list(range(n)), size)
                self.assertEqual(sum(got, []), list(range(n)))
                self.assertTrue(all(len(p) == size for p in got[:-1]))
                self.assertTrue(all(got))
