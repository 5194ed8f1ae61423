# The server starts, and each value that was acknowledged is there.
. "$(dirname "$0")/redis-start.sh"
for number in $(sed -n 's/^set //p' "$POWERCUT_ACKS"); do
    test "$(redis-cli -s "$socket" get "$number")" = "$(printf %03000d "$number")" ||
        { echo "value $number is lost"; exit 1; }
done
