# A database with an empty table.
. "$(dirname "$0")/mariadb-start.sh"
mkdir -p data/mysql
start
sql "CREATE DATABASE d; CREATE TABLE d.t (number int PRIMARY KEY, value varchar(1000)) ENGINE=InnoDB"
