"""``shelve`` over ``dbm.dumb`` loses what ``sync`` wrote.

The documentation promises: "Write back all entries in the cache [...] and synchronize the
persistent dictionary on disk". ``dbm.dumb`` calls no fsync, so the entry may be lost, and a kill
in ``sync`` loses the older ones too. ``shelve.open`` chooses ``dbm.sqlite3`` from Python 3.13 on.
"""

import dbm.dumb
import shelve


def remember(ack):
    with shelve.Shelf(dbm.dumb.open("shelf")) as shelf:
        for name in ("Anna", "Bert"):
            shelf[name] = {"visits": 1}
            shelf.sync()
            ack(name)


def check(known):
    with shelve.Shelf(dbm.dumb.open("shelf")) as shelf:
        names = set(shelf)
        assert set(known.acknowledged) <= names, f"only {sorted(names)} are left"
        assert all(shelf[name] == {"visits": 1} for name in names)


remember.check = check
