# Three writes to a Redis server, each acknowledged when the server has answered. The argument "empty" ends the server
# before them, so that it leaves only the files of an empty database.
directory=$(mktemp -d)
trap 'kill -9 $server; rm -r "$directory"' EXIT
redis-server --port 0 --unixsocket "$directory/socket" --dir "$PWD" --save '' \
    --appendonly yes --appendfsync always > /dev/null &
server=$!
until redis-cli -s "$directory/socket" ping 2>&1 | grep -q PONG; do sleep 0.02; done
test "$1" = empty && exit
for number in 1 2 3; do
    value=$(printf %03000d "$number")
    redis-cli -s "$directory/socket" set "$number" "$value" | grep -q OK && echo "set $number"
done
