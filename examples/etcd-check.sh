# The server starts, and each value that was acknowledged is there.
export ETCDCTL_API=3
port=$((10000 + $$ * 2 % 20000))
client=http://127.0.0.1:$port
peer=http://127.0.0.1:$((port + 1))
log=$(mktemp)
trap 'kill -9 $server 2> /dev/null; rm "$log"' EXIT
etcd --data-dir "$PWD/data" --listen-client-urls $client --advertise-client-urls $client \
    --listen-peer-urls $peer --initial-advertise-peer-urls $peer --initial-cluster default=$peer > "$log" 2>&1 &
server=$!
until etcdctl --endpoints $client endpoint health > /dev/null 2>&1; do
    kill -0 $server 2> /dev/null || { tail -n 1 "$log"; exit 1; }
    sleep 0.05
done
for number in $(sed -n 's/^put //p' "$POWERCUT_ACKS"); do
    test "$(etcdctl --endpoints $client get "key $number" --print-value-only)" = "$number" ||
        { echo "value $number is lost"; exit 1; }
done
