import json
assert json.load(open('state.json'))=={'ann':3,'cy':9,'bob':4}
