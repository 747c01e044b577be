import unittest
from person import Person
from store import from_dict, to_dict


class T(unittest.TestCase):
    def test_nick(self):
        p = Person("Ada", nickname="Countess")
        self.assertEqual(p.display(), "Ada (Countess)")
        self.assertEqual(from_dict(to_dict(p)).display(), "Ada (Countess)")

    def test_none(self):
        self.assertEqual(Person("Ada").display(), "Ada")
        self.assertEqual(from_dict({"name": "Ada"}).display(), "Ada")

    def test_long(self):
        with self.assertRaises(ValueError):
            Person("Ada", nickname="x" * 21)
        with self.assertRaises(ValueError):
            from_dict({"name": "Ada", "nickname": "x" * 21})
