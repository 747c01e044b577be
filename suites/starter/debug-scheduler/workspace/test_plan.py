import unittest

from plan.graph import Graph
from plan.runner import Runner


class PlanTest(unittest.TestCase):
    def test_order(self):
        g = Graph()
        g.add("link", ["compile"])
        g.add("compile")
        self.assertEqual(g.order(), ["compile", "link"])

    def test_done(self):
        g = Graph()
        g.add("a")
        self.assertEqual(Runner(g).run(lambda name: None).lines(), ["a done (1)"])


if __name__ == "__main__":
    unittest.main()
