# Starts a NATS server with JetStream in this directory, runs nats.py with these arguments, and stops the server.
# `SYNC` is how often the server syncs what it stores.
directory=$(mktemp -d)
trap 'kill -INT $server 2> /dev/null; wait $server; rm -r "$directory"' EXIT
echo "jetstream { store_dir: \"$PWD\", sync_interval: ${SYNC:-2m} }" > "$directory/config"
nats-server -c "$directory/config" -a 127.0.0.1 -p -1 --ports_file_dir "$directory" > "$directory/log" 2>&1 &
server=$!
until ls "$directory"/*.ports > "$directory/ports" 2> /dev/null; do
    kill -0 $server 2> /dev/null || { tail -n 1 "$directory/log"; exit 1; }
    sleep 0.01
done
python3 "$(dirname "$0")/nats.py" "$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' "$(cat "$directory/ports")")" "$@"
