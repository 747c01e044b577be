printf 'b\na\nb\nc\na\n' | sh unique.sh
echo --
printf 'x  y\nx y\n\\t\n' | sh unique.sh
echo --
printf '' | sh unique.sh
echo --
printf '\n\nlast' | sh unique.sh
