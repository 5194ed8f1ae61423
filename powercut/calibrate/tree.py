"""The outcome that a mounted file system shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from powercut.calibrate.program import DIRECTORY, errno_name, grouped, run_length, with_mode

HELPER_FILE: Final = "nudge"
"""A file of the recorder: an fsync of it makes the kernel commit."""

_NOT_OF_THE_PROGRAM: Final = frozenset({HELPER_FILE, "lost+found"})


def outcome_of(root: str) -> dict[str, str]:
    """Return the outcome of the tree below ``root``; a file that cannot be read is ``ERR...``."""
    return grouped(_entries(root, ""))


def _entries(root: str, folder: str) -> Iterator[tuple[str, int, str]]:
    with os.scandir(f"{root}/{folder}") as scan:
        for entry in scan:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if path in _NOT_OF_THE_PROGRAM:
                continue
            status = entry.stat(follow_symlinks=False)
            if entry.is_symlink():
                yield path, status.st_ino, f"->{os.readlink(entry.path)}"
            elif entry.is_dir(follow_symlinks=False):
                yield path, status.st_ino, with_mode(DIRECTORY, status.st_mode)
                yield from _entries(root, path)
            else:
                yield path, status.st_ino, with_mode(_text(entry.path), status.st_mode)


def _text(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return run_length(file.readall())
    except OSError as error:
        return f"ERR{errno_name(error)}"
