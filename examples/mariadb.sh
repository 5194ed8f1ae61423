# Three transactions, each acknowledged when its COMMIT has returned. The arguments are settings of the server.
. "$(dirname "$0")/mariadb-start.sh"
start "$@"
for number in 1 2 3; do
    sql "INSERT INTO d.t VALUES ($number, repeat('$number', 1000))" && echo "committed $number"
done
