# Three commits, each acknowledged when git has returned.
for number in 1 2 3; do
    echo "$number" > "file$number"
    git add "file$number"
    git commit --quiet --message "commit $number"
    echo "committed $number"
done
