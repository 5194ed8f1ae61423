"""Quarantine of damaged bytes, in files ``<path>.quarantine.<n>`` (n from 1).

They are evidence for a person. The runtime reads them only to find that an interrupted
recovery has already saved the same bytes.
"""

from __future__ import annotations

from system.ports import FileKind, FileSystem, Ids
from system.storage.atomic_file import read_whole, write_atomic
from system.storage.path import parent_of


def put_aside(files: FileSystem, path: str, data: bytes, ids: Ids) -> str:
    """Save a copy of damaged bytes of ``path`` durably; return the path of the copy."""
    number = 1
    while (kind := files.kind(copy := f"{path}.quarantine.{number}")) is not None:
        if kind is FileKind.FILE and read_whole(files, copy) == data:
            files.sync_dir(parent_of(copy))
            return copy
        number += 1
    write_atomic(files, copy, data, ids)
    return copy


def move_aside(files: FileSystem, path: str) -> str:
    """Rename the file ``path`` into quarantine durably; return its new path."""
    number = 1
    while files.kind(aside := f"{path}.quarantine.{number}") is not None:
        number += 1
    files.replace(path, aside)
    files.sync_dir(parent_of(path))
    return aside
