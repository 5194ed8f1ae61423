"""``dbm.dumb`` loses its old keys when the process is killed in ``sync``.

The documentation promises: "Synchronize the on-disk directory and data files." The index is
replaced in two steps: the old one is renamed, then the new one is written. A kill between the two
leaves a database without its keys; no power cut is needed.
"""

import dbm.dumb
import os


def update(ack):
    with dbm.dumb.open("people", "c") as database:
        database["Anna"] = "1"
    os.sync()
    ack("Anna")
    with dbm.dumb.open("people", "w") as database:
        database["Bert"] = "2"
    os.sync()
    ack("Bert")


def check(known):
    with dbm.dumb.open("people", "c") as database:
        names = {key.decode() for key in database}
    assert set(known.acknowledged) <= names, f"only {sorted(names)} are left"


update.check = check
