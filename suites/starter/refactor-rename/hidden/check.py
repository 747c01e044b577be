import subprocess,sys
sys.path.insert(0,'.')
from shop.cart import compute_total
from shop.report import report
assert compute_total([1,2])==3 and report([4])=='total: 4'
assert subprocess.run([sys.executable,'main.py'],capture_output=True,text=True).stdout=='3\n'
assert subprocess.run(['grep','-rnw','calc','--include=*.py','shop','main.py'],capture_output=True).returncode==1
