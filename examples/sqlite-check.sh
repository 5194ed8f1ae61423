# The database is sound, and each row that was acknowledged is there.
test "$(sqlite3 db 'PRAGMA integrity_check')" = ok || { echo "the database is corrupt"; exit 1; }
for number in $(sed -n 's/^committed //p' "$POWERCUT_ACKS"); do
    test "$(sqlite3 db "SELECT count(*) FROM t WHERE x = $number")" = 1 ||
        { echo "row $number is lost"; exit 1; }
done
