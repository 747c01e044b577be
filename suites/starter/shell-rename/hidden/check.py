import os
r=lambda p:open(p).read()
assert not [f for d,_,fs in os.walk('photos') for f in fs if f.endswith('.jpeg') and f!='a.jpeg']
assert r('photos/b c.jpg')=='2' and r('photos/sub/d.jpg')=='3' and r('photos/e.png')=='4'
assert '5'==r('photos/a.jpg') and any(r(os.path.join(d,f))=='1' for d,_,fs in os.walk('photos') for f in fs)
