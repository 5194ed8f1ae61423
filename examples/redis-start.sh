# Starts a Redis server with an append-only file in this directory, and sets `socket`, its address.
directory=$(mktemp -d)
socket=$directory/socket
trap 'kill -9 $server 2> /dev/null; rm -r "$directory"' EXIT
redis-server --port 0 --unixsocket "$socket" --dir "$PWD" --save '' \
    --appendonly yes --appendfsync always > "$directory/log" &
server=$!
until redis-cli -s "$socket" ping 2>&1 | grep -q PONG; do
    kill -0 $server 2> /dev/null || { sed -n 's/.* # //p' "$directory/log"; exit 1; }
    sleep 0.01
done
