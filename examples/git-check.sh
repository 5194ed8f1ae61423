# Each commit that was acknowledged can be read from HEAD.
for number in $(sed -n 's/^committed //p' "$POWERCUT_ACKS"); do
    test "$(git show "HEAD:file$number" 2>&1)" = "$number" ||
        { echo "commit $number is lost"; exit 1; }
done
