[ "$(cat ANSWER.txt)" = r0247 ]
