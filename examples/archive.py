"""``zipfile`` loses all members of an archive when a kill comes while one is added.

The documentation promises that in mode ``a`` "additional files are added to it", and warns only of
"essential records" that are missing before ``close``. The new member is written over the directory
of the archive, and ``close`` writes the directory again. A kill between the two leaves an archive
without a directory.
"""

import os
import zipfile


def add_two(ack):
    for name in ("one", "two"):
        with zipfile.ZipFile("archive.zip", "a") as archive:
            archive.writestr(name, "text " * 2000)
        os.sync()
        ack(name)


def check(known):
    names = set()
    if known.acknowledged and zipfile.is_zipfile("archive.zip"):
        with zipfile.ZipFile("archive.zip") as archive:
            names = set(archive.namelist())
    assert set(known.acknowledged) <= names, f"only {sorted(names)} are left"


add_two.check = check
