"""A key-value store over an embedded database: ``databases.py DATABASE create|put|check``.

All modes open the database, and create it where it is missing. ``put`` stores three values, and
prints a line after each. ``check`` fails unless every value is there that a line has acknowledged.
"""

import os
import sys
from pathlib import Path


def lmdb():
    import lmdb

    environment = lmdb.open("store", map_size=1 << 20)

    def put(key, value):
        with environment.begin(write=True) as transaction:
            transaction.put(key.encode(), value.encode())

    def get(key):
        with environment.begin() as transaction:
            found = transaction.get(key.encode())
        return found and found.decode()

    return put, get


def leveldb():
    import plyvel

    database = plyvel.DB("store", create_if_missing=True)

    def put(key, value):
        database.put(key.encode(), value.encode(), sync=True)

    def get(key):
        found = database.get(key.encode())
        return found and found.decode()

    return put, get


def rocksdb():
    import rocksdict

    database = rocksdict.Rdict("store")
    options = rocksdict.WriteOptions()
    options.sync = True
    database.set_write_options(options)

    def put(key, value):
        database[key] = value

    return put, database.get


def duckdb():
    import duckdb

    connection = duckdb.connect("store.duckdb")
    connection.execute("CREATE TABLE IF NOT EXISTS store (key TEXT PRIMARY KEY, value TEXT)")

    def put(key, value):
        connection.execute("INSERT INTO store VALUES (?, ?)", [key, value])

    def get(key):
        row = connection.execute("SELECT value FROM store WHERE key = ?", [key]).fetchone()
        return row and row[0]

    return put, get


def zodb():
    import transaction
    import ZODB

    root = ZODB.DB("store.fs").open().root()

    def put(key, value):
        root[key] = value
        transaction.commit()

    return put, root.get


def diskcache():
    import diskcache

    cache = diskcache.Cache("store")
    return cache.set, cache.get


def sqlitedict():
    import sqlitedict

    values = sqlitedict.SqliteDict("store.sqlite")

    def put(key, value):
        values[key] = value
        values.commit()

    return put, values.get


def tinydb():
    import tinydb

    database = tinydb.TinyDB("store.json")

    def put(key, value):
        database.insert({"key": key, "value": value})

    def get(key):
        found = database.get(tinydb.where("key") == key)
        return found and found["value"]

    return put, get


def semidbm():
    import semidbm

    values = semidbm.open("store", "c")

    def put(key, value):
        values[key] = value
        values.sync()

    def get(key):
        return values[key].decode() if key.encode() in values else None

    return put, get


def unqlite():
    import unqlite

    database = unqlite.UnQLite("store.udb")

    def put(key, value):
        database[key] = value
        database.commit()

    def get(key):
        return database[key].decode() if key in database else None

    return put, get


def main(database, mode):
    put, get = globals()[database]()
    keys = "one", "two", "three"
    if mode == "put":
        for key in keys:
            put(key, key * 40)
            print(key, flush=True)
    elif mode == "check":
        acknowledged = Path(os.environ["POWERCUT_ACKS"]).read_text("utf-8").splitlines()
        for key in keys:
            found = get(key)
            assert found is not None or key not in acknowledged, f"{key} is lost"
            assert found in {None, key * 40}, f"{key} is {found!r:.40}"


main(*sys.argv[1:])
