# Three writes to a Redis server, each acknowledged when the server has answered. The argument "empty" ends the server
# before them, so that it leaves only the files of an empty database.
. "$(dirname "$0")/redis-start.sh"
test "$1" = empty && exit
for number in 1 2 3; do
    redis-cli -s "$socket" set "$number" "$(printf %03000d "$number")" | grep -q OK && echo "set $number"
done
