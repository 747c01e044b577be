import sys
sys.path.insert(0,'.')
import keys,inspect
assert keys.clean('  A  B ')=='a b'
assert keys.name_key(' A  B')=='n:a b' and keys.mail_key(' X@Y ')=='m:x@y'
src=open('keys.py').read()
assert src.count('.lower()')==1 and src.count('split()')==1
assert 'clean(' in inspect.getsource(keys.name_key) and 'clean(' in inspect.getsource(keys.mail_key)
