# Defines `start`, which starts a PostgreSQL server on ./data. It is stopped when the script ends.
# The server refuses to run as root, so root becomes the user postgres.
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin)
test "$(id -u)" != 0 || as="setpriv --reuid postgres --regid postgres --clear-groups"
PGHOST=$(mktemp -d)
export PGHOST PGUSER=postgres
chmod 777 "$PGHOST"
trap 'kill -INT $server 2> /dev/null; wait $server; rm -r "$PGHOST"' EXIT
# The arguments are settings.
start() {
    $as postgres -D data -h '' -k "$PGHOST" -c log_line_prefix= "$@" > "$PGHOST/log" 2>&1 &
    server=$!
    until grep -q 'ready to accept connections' "$PGHOST/log"; do
        kill -0 $server 2> /dev/null || { grep -E 'FATAL|PANIC' "$PGHOST/log"; exit 1; }
        sleep 0.01
    done
}
