# ruff: noqa: N802 - the method carries SQLite's own name.
"""Where SQLite's random numbers come from: nonces of journals, salts of WALs, random().

SQLite has one generator for the whole process, and seeds it from the default VFS at the
first use; left alone, that is /dev/urandom, and no two runs would write the same bytes.
So it is seeded anew whenever a database is opened.

Two lifetimes of one disk must not repeat each other's nonces, or a stale journal record
could pass for a fresh one, which in reality it does once in 2^32. The seed therefore
depends on the database's first page, which every commit changes, and on the clock.
"""

from __future__ import annotations

from typing import Final

import apsw
from xxhash import xxh3_128_digest

from sim.disk.cache.inode import Inode
from sim.disk.disk import Disk

SEED_BYTES: Final = 44


class _Seed(apsw.VFS):
    """The default VFS, as long as it takes to be asked for a seed."""

    def __init__(self, seed: bytes) -> None:
        super().__init__("powercut-seed", None, True)
        self.seed = seed

    def xRandomness(self, amount: int) -> bytes:
        return self.seed[:amount]


def seed_of(disk: Disk, database: Inode | None, seed: int) -> bytes:
    """Return ``SEED_BYTES`` bytes for a database on this disk, now."""
    page = database.blocks.get(0, b"") if database is not None else b""
    state = xxh3_128_digest(b"%d:%d:%d:" % (seed, disk.now_ns(), disk.operations) + page)
    return (state * 3)[:SEED_BYTES]


def seed_sqlite(seed: bytes) -> None:
    """Start SQLite's generator anew."""
    source = _Seed(seed)
    apsw.randomness(0)
    apsw.randomness(1)
    source.unregister()
