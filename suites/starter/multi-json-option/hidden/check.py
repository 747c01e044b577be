import json,subprocess,sys
run=lambda *a:subprocess.run([sys.executable,'tool.py',*a],capture_output=True,text=True)
assert run().stdout=='name: belay\nsize: 3\n'
assert json.loads(run('--json').stdout)=={'name':'belay','size':3}
assert run('--jsno').returncode!=0
sys.path.insert(0,'.')
import show
assert json.loads(show.as_json({'a':1}))=={'a':1}
assert '--json' in open('README.md').read()
