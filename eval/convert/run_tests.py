"""Runs test files without pytest: unittest classes and test_ functions. Usage: run_tests.py FOLDER [--junit]."""
import importlib.util
import inspect
import pathlib
import sys
import tempfile
import traceback
import types
import unittest


def stub_pytest():
    """Just enough of pytest for files that import it: raises, mark, fixture, approx, fail, skip."""
    pytest = types.ModuleType("pytest")

    class Raises:
        def __init__(self, expected, match=None):
            self.expected, self.match, self.value = expected, match, None

        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            import re
            assert kind is not None, "did not raise %r" % (self.expected,)
            if not issubclass(kind, self.expected):
                return False
            self.value = value
            if self.match and not re.search(self.match, str(value)):
                raise AssertionError("%r does not match %r" % (str(value), self.match))
            return True

    class Mark:
        def __getattr__(self, name):
            if name == "parametrize":
                def parametrize(names, rows, **_):
                    def wrap(f):
                        keys = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
                        f.rows = [dict(zip(keys, row if len(keys) > 1 else (row,))) for row in rows]
                        return f
                    return wrap
                return parametrize

            def mark(*args, **_):
                if len(args) == 1 and callable(args[0]):
                    return args[0]
                return lambda f: f
            return mark

    def fixture(f=None, **_):
        def wrap(g):
            g.is_fixture = True
            return g
        return wrap(f) if f else wrap

    def fail(reason=""):
        raise AssertionError(reason)

    class approx:
        def __init__(self, value, rel=1e-6, abs=1e-12):
            self.value, self.rel, self.abs = value, rel, abs

        def __eq__(self, other):
            return abs(other - self.value) <= max(self.rel * abs(self.value), self.abs)

    pytest.raises, pytest.mark, pytest.fixture, pytest.fail, pytest.approx = Raises, Mark(), fixture, fail, approx
    pytest.main = lambda *a, **k: 0
    sys.modules["pytest"] = pytest


def call(f, module):
    """Calls a test function with the fixtures that it names."""
    args = {}
    for name in inspect.signature(f).parameters:
        if name == "tmp_path":
            args[name] = pathlib.Path(tempfile.mkdtemp())
        elif callable(getattr(module, name, None)) and getattr(getattr(module, name), "is_fixture", False):
            value = call(getattr(module, name), module)
            args[name] = next(value) if inspect.isgenerator(value) else value
    rows = getattr(f, "rows", [{}])
    for row in rows:
        result = f(**{**args, **row})
    return result


def main(where):
    root = pathlib.Path(where).resolve()
    files = [root] if root.is_file() else sorted(set(root.glob("**/*_test.py")) | set(root.glob("**/test_*.py")))
    sys.path.insert(0, str(root.parent if root.is_file() else root))
    stub_pytest()
    ran = failed = 0
    for file in files:
        sys.path.insert(0, str(file.parent))
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            traceback.print_exc()
            ran, failed = ran + 1, failed + 1
            continue
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
        result = unittest.TextTestRunner(verbosity=1).run(suite)
        ran += result.testsRun
        failed += len(result.failures) + len(result.errors) + len(getattr(result, "skipped", []))
        for name, value in list(vars(module).items()):
            owner = None
            tests = []
            if inspect.isfunction(value) and name.startswith("test"):
                tests = [value]
            elif inspect.isclass(value) and name.startswith("Test") and not issubclass(value, unittest.TestCase):
                owner = value()
                tests = [getattr(owner, n) for n in dir(owner) if n.startswith("test")]
            for test in tests:
                ran += 1
                try:
                    call(test, module)
                except BaseException:
                    traceback.print_exc()
                    failed += 1
                    print("FAILED", test.__name__)
    print("%d tests, %d failed" % (ran, failed))
    return 0 if ran and not failed else 1


if __name__ == "__main__":
    code = main(sys.argv[1] if len(sys.argv) > 1 else ".")
    sys.stdout.flush()
    sys.stderr.flush()
    import os
    os._exit(code)
