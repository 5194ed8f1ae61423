"""The outcome that a mounted file system shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from powercut.calibrate.program import errno_name, grouped, run_length

HELPER_FILE: Final = "nudge"
"""A file of the recorder: an fsync of it makes the kernel commit."""

_NOT_OF_THE_PROGRAM: Final = frozenset({HELPER_FILE, "lost+found"})


def outcome_of(root: str) -> dict[str, str]:
    """Return the outcome of the tree below ``root``; a file that cannot be read is ``ERR...``."""
    return grouped(_entries(root, ""))


def _entries(root: str, folder: str) -> Iterator[tuple[str, int, str | None]]:
    with os.scandir(f"{root}/{folder}") as scan:
        for entry in scan:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in _NOT_OF_THE_PROGRAM:
                continue
            inode = entry.stat(follow_symlinks=False).st_ino
            if entry.is_symlink():
                yield path, inode, f"->{os.readlink(entry.path)}"
            elif entry.is_dir(follow_symlinks=False):
                yield path, inode, None
                yield from _entries(root, path)
            else:
                yield path, inode, _text(entry.path)


def _text(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return run_length(file.readall())
    except OSError as error:
        return f"ERR{errno_name(error)}"
