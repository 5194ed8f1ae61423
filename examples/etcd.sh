# Three writes to an etcd server, each acknowledged when the server has answered. The argument "empty" ends the server
# before them, so that it leaves only the files of an empty database.
export ETCDCTL_API=3
port=$((10000 + $$ * 2 % 20000))
client=http://127.0.0.1:$port
peer=http://127.0.0.1:$((port + 1))
log=$(mktemp)
trap 'kill -9 $server; rm "$log"' EXIT
etcd --data-dir "$PWD/data" --listen-client-urls $client --advertise-client-urls $client \
    --listen-peer-urls $peer --initial-advertise-peer-urls $peer --initial-cluster default=$peer > "$log" 2>&1 &
server=$!
until etcdctl --endpoints $client endpoint health > /dev/null 2>&1; do sleep 0.05; done
test "$1" = empty && exit
for number in 1 2 3; do
    etcdctl --endpoints $client put "key $number" "$number" | grep -q OK && echo "put $number"
done
