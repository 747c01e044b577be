d=$(mktemp -d)
mkdir "$d/in dir"
echo 1 > "$d/in dir/a b.txt"
echo 2 > "$d/in dir/c.txt"
echo 3 > "$d/in dir/-n.txt"
echo 4 > "$d/in dir/d.md"
sh backup.sh "$d/in dir" "$d/out dir"
echo "exit $?"
for f in "$d/out dir"/*; do echo "${f##*/}: $(cat -- "$f")"; done | LC_ALL=C sort
mkdir "$d/empty"
sh backup.sh "$d/empty" "$d/o"
echo "exit $?"
ls "$d/o"
