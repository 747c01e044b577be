[ "$(cat ANSWER.txt)" = 3 ]
