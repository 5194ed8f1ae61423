# The server starts, and each value that was acknowledged is there.
directory=$(mktemp -d)
trap 'kill -9 $server 2> /dev/null; rm -r "$directory"' EXIT
redis-server --port 0 --unixsocket "$directory/socket" --dir "$PWD" --save '' \
    --appendonly yes --appendfsync always > "$directory/log" &
server=$!
until redis-cli -s "$directory/socket" ping 2>&1 | grep -q PONG; do
    kill -0 $server 2> /dev/null || { sed -n 's/.* # //p' "$directory/log"; exit 1; }
    sleep 0.01
done
for number in $(sed -n 's/^set //p' "$POWERCUT_ACKS"); do
    test "$(redis-cli -s "$directory/socket" get "$number")" = "$(printf %03000d "$number")" ||
        { echo "value $number is lost"; exit 1; }
done
