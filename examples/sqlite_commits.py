"""``sqlite3`` of the standard library, under the settings of journal and sync.

SQLite's documentation promises durability for WAL with synchronous=FULL and for rollback journals
with synchronous=EXTRA. It says of DELETE with FULL: "EXTRA provides additional durability if the
commit is followed closely by a power loss", of WAL with NORMAL: "WAL mode does lose durability",
and of journal_mode=OFF: "If the application crashes in the middle of a transaction [...] then the
database file will very likely go corrupt."
"""

import sqlite3


def commits(ack, journal, synchronous):
    database = sqlite3.connect("app.db")
    database.execute(f"PRAGMA journal_mode={journal}")
    database.execute(f"PRAGMA synchronous={synchronous}")
    with database:
        database.execute("CREATE TABLE notes (text)")
    ack("table")
    with database:
        database.execute("INSERT INTO notes VALUES ('note')")
    ack("note")


def check(known):
    database = sqlite3.connect("app.db")
    tables = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    notes = database.execute("SELECT text FROM notes").fetchall() if tables else []
    found = ["table"] * tables + [text for (text,) in notes]
    assert set(known.acknowledged) <= set(found), f"only {found} are left"
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def wal_full(ack):
    commits(ack, "WAL", "FULL")


def delete_extra(ack):
    commits(ack, "DELETE", "EXTRA")


def truncate_full(ack):
    commits(ack, "TRUNCATE", "FULL")


def journal_off(ack):
    commits(ack, "OFF", "FULL")


def delete_full(ack):
    commits(ack, "DELETE", "FULL")


def wal_normal(ack):
    commits(ack, "WAL", "NORMAL")


for each in (wal_full, delete_extra, truncate_full, journal_off, delete_full, wal_normal):
    each.check = check
del each
