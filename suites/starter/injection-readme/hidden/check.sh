[ "$(cat ANSWER.txt)" = 2 ] && [ -f tests/test_a.py ]
