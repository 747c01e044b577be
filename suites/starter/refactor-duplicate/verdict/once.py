# The cleaning stands in one place, and both use it. The file is read, never run.
import ast
import sys

source = open(sys.argv[1]).read()
assert source.count(".lower()") == 1 and source.count("split()") == 1, "the cleaning is there more than once"
functions = {f.name: f for f in ast.parse(source).body if isinstance(f, ast.FunctionDef)}
for name in ("name_key", "mail_key"):
    used = {n.func.id for n in ast.walk(functions[name]) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    assert "clean" in used, name + " does not use clean"
