# The server starts, and each value that was acknowledged is there.
. "$(dirname "$0")/etcd-start.sh"
for number in $(sed -n 's/^put //p' "$POWERCUT_ACKS"); do
    test "$(etcdctl --endpoints $client get "key $number" --print-value-only)" = "$number" ||
        { echo "value $number is lost"; exit 1; }
done
