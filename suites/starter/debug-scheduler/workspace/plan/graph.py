"""What depends on what."""


class Cycle(ValueError):
    """Jobs that wait for each other."""


class Graph:
    """Jobs and what each of them needs. Names are kept in the order in which they were added."""

    def __init__(self):
        self.needs = {}

    def add(self, name, needs=()):
        """Add a job. What it needs may be added later."""
        self.needs[name] = list(needs)

    def order(self):
        """The jobs in an order in which each comes after what it needs; else as they were added.

        Raises Cycle where there is none, and KeyError for a job that was never added.
        """
        done, out = set(), []

        def visit(name):
            if name in done:
                return
            done.add(name)
            for other in self.needs[name]:
                visit(other)
            out.append(name)

        for name in self.needs:
            visit(name)
        return out
