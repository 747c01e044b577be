import unittest
from paging import pages


class PagesTest(unittest.TestCase):
    def test_rest(self):
        self.assertEqual(pages([1, 2, 3], 2), [[1, 2], [3]])
