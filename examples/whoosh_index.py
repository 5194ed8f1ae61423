"""A commit of Whoosh may lose the whole index, with all that earlier commits have written.

The documentation promises that ``commit`` "saves all additions and changes to disk". It calls no
fsync: the new table of contents is renamed into place, and the files of the last one are removed.
"""

import os

from whoosh import index
from whoosh.fields import ID, Schema


def add_two(ack):
    people = index.create_in(".", Schema(name=ID(stored=True)))
    for name in ("Anna", "Bert"):
        writer = people.writer()
        writer.add_document(name=name)
        writer.commit()
        if name == "Anna":
            os.sync()
        ack(name)


def check(known):
    found = []
    if known.acknowledged:
        with index.open_dir(".").searcher() as searcher:
            found = [document["name"] for document in searcher.documents()]
    assert set(known.acknowledged) <= set(found), f"only {found} are left"


add_two.check = check
