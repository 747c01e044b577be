r=lambda n:open('conf/%s.ini'%n).read()
for n,p in (('a',1080),('b',1081),('c',1082),('d',1083)):
    assert r(n)=='address = %s.example\nport = %d\n# migrated\n'%(n,p),(n,r(n))
