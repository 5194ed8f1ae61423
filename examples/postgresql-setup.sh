# A database with an empty table.
. "$(dirname "$0")/postgresql-start.sh"
mkdir -m 700 data
test "$(id -u)" != 0 || chown postgres data
$as initdb -D data --no-sync --wal-segsize=1 -A trust -U postgres --no-locale > "$PGHOST/log"
start
psql -qc "CREATE TABLE t (number int PRIMARY KEY, value text)"
