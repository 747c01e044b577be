[ "$(printf 'b\na\nb\nc\na\n' | sh unique.sh)" = "$(printf 'b\na\nc')" ] && [ "$(printf 'x  y\nx y\n' | sh unique.sh)" = "$(printf 'x  y\nx y')" ] && [ -z "$(printf '' | sh unique.sh)" ]
