"""The settings with which every host opens a database."""

from __future__ import annotations

from typing import Final

DATABASE_PRAGMAS: Final = (
    # Before the first access: WAL then needs no shared memory, and other processes are locked out.
    "PRAGMA locking_mode=EXCLUSIVE",
    "PRAGMA journal_mode=WAL",
    # In WAL mode NORMAL would acknowledge commits that a power cut may undo.
    "PRAGMA synchronous=FULL",
    # 16 MiB: a transaction of many works changes more pages than the 2 MiB of SQLite's default.
    "PRAGMA cache_size=-16384",
)
