# Three transactions of one connection, each acknowledged when its COMMIT has returned.
# The arguments are the journal mode and the synchronous setting.
for number in 1 2 3; do
    echo "INSERT INTO t VALUES ($number); SELECT 'committed $number';"
done | stdbuf -oL sqlite3 -cmd "PRAGMA synchronous=$2" -cmd "PRAGMA journal_mode=$1" db
