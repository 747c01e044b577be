import json
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.executable, "tool.py", *args], capture_output=True, text=True)


def normal(text):
    return json.dumps(json.loads(text), sort_keys=True)


print(run().stdout, end="")
print(normal(run("--json").stdout))
print("an unknown option is", "taken" if run("--jsno").returncode == 0 else "refused")
import show
print(normal(show.as_json({"b": [1], "a": "ü"})))
