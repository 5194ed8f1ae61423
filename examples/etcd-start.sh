# Starts an etcd server of one member in this directory, and sets `client`, its address, and `log`, its output.
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
