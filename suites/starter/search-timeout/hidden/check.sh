[ "$(cat ANSWER.txt)" = "conf/base.py 30" ]
