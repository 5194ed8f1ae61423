"""Atomic replacement of whole files: readers and the next boot find the old bytes or the new.

The new content is written in the same directory under a temporary name, synced, and renamed over
the file; then the directory is synced. After a failure the temporary file is removed. After a
crash it remains, is never read, and is removed by ``sweep_temporaries`` at the next boot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from posixpath import join
from typing import Final

from system.errors import RaisingStorageFull
from system.ports import File, FileSystem, Ids, OpenMode
from system.storage.path import name_of, parent_of
from system.storage.transfer import read_all, write_all

_TEMPORARY: Final = re.compile(r".+\.tmp\.[0-9a-f]{8}")
_SPARE_NAMES: Final = 8


def read_whole(files: FileSystem, path: str) -> bytes:
    """Return the content of a file; ``OSError`` as from ``open`` and ``pread``."""
    data, size_bytes = files.read(path)
    if len(data) == size_bytes:
        return data
    file = files.open(path, OpenMode.READ)
    try:
        return read_all(file)
    finally:
        file.close()


def write_atomic(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Replace the content of ``path`` by ``data``, durably; its directory must exist.

    Raises ``StorageFull`` or ``OSError``. The old file is then untouched, unless the sync of
    the directory failed: then the new content is visible, and a power cut may leave either.
    """
    with RaisingStorageFull(path):
        replace_file(files, path, data, ids)
        files.sync_dir(parent_of(path))


def replace_file(
    files: FileSystem, path: str, data: bytes, ids: Ids, scratch: str | None = None
) -> None:
    """Replace the content of ``path``; the new name is durable after ``sync_dir``.

    ``scratch`` is the directory of the temporary file, by default that of ``path``. Raises
    ``OSError`` with the old file untouched.
    """
    replace_by_pieces(files, path, (data,), ids, scratch)


def replace_by_pieces(
    files: FileSystem, path: str, pieces: Iterable[bytes], ids: Ids, scratch: str | None = None
) -> None:
    """Do the same as ``replace_file``, with content that is not in memory as a whole.

    After an ``OSError`` of ``pieces`` the old file is untouched as well.
    """
    place = path if scratch is None else join(scratch, name_of(path))
    temporary, file = _create_temporary(files, place, ids)
    try:
        try:
            offset = 0
            for piece in pieces:
                write_all(file, piece, offset)
                offset += len(piece)
            file.fsync()
        finally:
            file.close()
        files.replace(temporary, path)
    except OSError:
        _remove(files, temporary)
        raise


def _create_temporary(files: FileSystem, path: str, ids: Ids) -> tuple[str, File]:
    """Create a new file beside ``path``, under a name that no crash has left there."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    for _ in range(_SPARE_NAMES):
        try:
            return temporary, files.open(temporary, OpenMode.CREATE)
        except FileExistsError:
            temporary = f"{path}.tmp.{ids.random_hex(8)}"
    return temporary, files.open(temporary, OpenMode.CREATE)


def _remove(files: FileSystem, path: str) -> None:
    """Remove a temporary file; if that fails, the next boot sweeps it."""
    try:
        files.unlink(path)
    except OSError:
        return


def sweep_temporaries(
    files: FileSystem, directory: str, prefix: str = "", names: Sequence[str] | None = None
) -> list[str]:
    """Remove the temporary files that crashes left in a directory; return their paths.

    Only names that start with ``prefix`` are removed. ``names`` is the directory's listing,
    if the caller has it. There is no barrier: if a power cut restores a file, the next boot
    removes it.
    """
    swept = []
    for name in files.listdir(directory) if names is None else names:
        if name.startswith(prefix) and _TEMPORARY.fullmatch(name):
            path = join(directory, name)
            # A directory is no file of a crash.
            with suppress(IsADirectoryError):
                files.unlink(path)
                swept.append(path)
    return swept
