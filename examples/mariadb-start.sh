# Defines `start`, which starts a MariaDB server on ./data, and `sql`, its client. The server is stopped when the
# script ends. Its files are small, and its temporary ones are elsewhere.
PATH=$PATH:/usr/sbin
test "$(id -u)" != 0 || user=--user=root
directory=$(mktemp -d)
trap 'kill $server 2> /dev/null; wait $server; rm -r "$directory"' EXIT
sql() { mariadb --no-defaults -S "$directory/socket" -NBe "$1"; }
# The arguments are settings.
start() {
    : > "$directory/log"
    mariadbd --no-defaults $user --datadir="$PWD/data" --tmpdir="$directory" --socket="$directory/socket" \
        --pid-file="$directory/pid" --skip-networking --skip-grant-tables --innodb-use-native-aio=0 \
        --innodb-buffer-pool-size=6M --innodb-buffer-pool-load-at-startup=0 --innodb-buffer-pool-dump-at-shutdown=0 \
        --innodb-log-file-size=4M --innodb-data-file-path=ibdata1:6M:autoextend --innodb-autoextend-increment=1 \
        --innodb-temp-data-file-path="../../../../../../$directory/ibtmp:3M:autoextend" "$@" >> "$directory/log" 2>&1 &
    server=$!
    until grep -q 'ready for connections' "$directory/log"; do
        kill -0 $server 2> /dev/null || { sed -n 's/.*\[ERROR\] //p' "$directory/log" | head -n 1; exit 1; }
        sleep 0.02
    done
}
