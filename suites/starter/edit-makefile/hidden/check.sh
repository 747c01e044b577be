[ "$(make -s all)" = "$(printf 'built\nlinted')" ] && [ "$(make -s lint)" = linted ]
