# The server starts, and each row that was acknowledged is there.
. "$(dirname "$0")/mariadb-start.sh"
start
for number in $(sed -n 's/^committed //p' "$POWERCUT_ACKS"); do
    test "$(sql "SELECT value = repeat('$number', 1000) FROM d.t WHERE number = $number")" = 1 ||
        { echo "row $number is lost"; exit 1; }
done
