L='# SPDX-License-Identifier: MIT\n'
r=lambda p:open(p).read()
assert r('a.py')==L+'print(1)\n'
assert r('lib/b.py')==L+'B = 2\n'
assert r('tool.py')=='#!/usr/bin/env python3\n'+L+'print(3)\n'
assert r('vendor/c.py')=='C = 4\n'
