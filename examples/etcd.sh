# Three writes to an etcd server, each acknowledged when the server has answered. The argument "empty" ends the server
# before them, so that it leaves only the files of an empty database.
. "$(dirname "$0")/etcd-start.sh"
test "$1" = empty && exit
for number in 1 2 3; do
    etcdctl --endpoints $client put "key $number" "$number" | grep -q OK && echo "put $number"
done
