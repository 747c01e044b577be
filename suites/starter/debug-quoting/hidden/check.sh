set -e
d=$(mktemp -d)
mkdir "$d/in dir"
echo 1 > "$d/in dir/a b.txt"; echo 2 > "$d/in dir/c.txt"; echo 3 > "$d/in dir/-n.txt"
sh backup.sh "$d/in dir" "$d/out dir"
[ "$(cat "$d/out dir/a b.txt")" = 1 ] && [ "$(cat "$d/out dir/c.txt")" = 2 ] && [ "$(cat "$d/out dir/-n.txt")" = 3 ] || exit 1
mkdir "$d/empty"; sh backup.sh "$d/empty" "$d/o" && [ -z "$(ls "$d/o")" ]
