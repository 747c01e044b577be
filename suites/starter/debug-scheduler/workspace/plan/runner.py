"""Runs jobs."""

from plan.report import Report


class Runner:
    """Runs the jobs of a graph, each after what it needs.

    A job that fails is tried again up to `retries` times. What needs a job that failed for good is skipped, and so is
    what needs a job that was skipped.
    """

    def __init__(self, graph, retries=1):
        self.graph = graph
        self.retries = retries

    def run(self, do):
        """Call do(name) for each job and return a Report. A job fails when do raises."""
        report = Report()
        for name in self.graph.order():
            blocked = [n for n in self.graph.needs[name] if report.state(n) == "failed"]
            if blocked:
                report.note(name, "skipped", 0)
                continue
            self.attempt(name, do, report)
        return report

    def attempt(self, name, do, report):
        for tries in range(1, self.retries + 1):
            try:
                do(name)
            except Exception:
                report.note(name, "failed", tries)
            else:
                report.note(name, "done", tries)
