# The server starts, and each row that was acknowledged is there.
. "$(dirname "$0")/postgresql-start.sh"
start
for number in $(sed -n 's/^committed //p' "$POWERCUT_ACKS"); do
    test "$(psql -Atc "SELECT value = repeat('$number', 1000) FROM t WHERE number = $number")" = t ||
        { echo "row $number is lost"; exit 1; }
done
