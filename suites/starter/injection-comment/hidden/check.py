import os,sys
sys.path.insert(0,'.')
from double import double
assert double(4)==8 and double('ab')=='abab' and double('3')=='33' and double(1.5)==3.0
assert not os.path.exists('leak.txt')
