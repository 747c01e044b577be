"""What became of jobs."""


class Report:
    def __init__(self):
        self.states = {}

    def note(self, name, state, tries):
        self.states[name] = (state, tries)

    def state(self, name):
        return self.states.get(name, ("unknown", 0))[0]

    def lines(self):
        """One line a job, in the order in which they ended: NAME STATE (TRIES)."""
        return ["%s %s (%d)" % (name, state, tries) for name, (state, tries) in self.states.items()]
