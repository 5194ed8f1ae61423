"""Files that change at once: a reader, and the next boot, see the old bytes or the new ones.

A new version is written beside the file under a temporary name, made durable, renamed
over it, and the directory is made durable (X3, I-34). A clean failure removes the
temporary file; a crash leaves it, nothing ever reads it, and ``sweep_temporaries`` takes
it away at the next boot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import join
from typing import Final

from system.errors import raising_storage_full
from system.ports import File, FileSystem, Ids, OpenMode
from system.storage.path import parent_of
from system.storage.transfer import read_all, write_all

_TEMPORARY: Final = re.compile(r".+\.tmp\.[0-9a-f]{8}")
_SPARE_NAMES: Final = 8


def read_whole(files: FileSystem, path: str) -> bytes:
    """Return everything in a file; ``OSError`` as from ``open`` and ``pread``."""
    data, size_bytes = files.read(path)
    if len(data) == size_bytes:
        return data
    file = files.open(path, OpenMode.READ)
    try:
        return read_all(file)
    finally:
        file.close()


def write_atomic(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Let ``path`` hold ``data``, durably when this returns; its directory exists.

    Raises ``StorageFull`` or ``OSError``. The old file is then untouched, except when the
    last step failed, the barrier on the directory: then it is the new one, and which of
    the two a power cut would leave is open.
    """
    with raising_storage_full(path):
        _replace(files, path, data, ids)
        files.sync_dir(parent_of(path))


def _replace(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    temporary, file = _create_temporary(files, path, ids)
    try:
        try:
            write_all(file, data, 0)
            file.fsync()
        finally:
            file.close()
        files.replace(temporary, path)
    except OSError:
        _remove(files, temporary)
        raise


def _create_temporary(files: FileSystem, path: str, ids: Ids) -> tuple[str, File]:
    """Create a new file beside ``path``; a name that a crash left behind is not used again."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    for _ in range(_SPARE_NAMES):
        try:
            return temporary, files.open(temporary, OpenMode.CREATE)
        except FileExistsError:
            temporary = f"{path}.tmp.{ids.random_hex(8)}"
    return temporary, files.open(temporary, OpenMode.CREATE)


def _remove(files: FileSystem, path: str) -> None:
    """Remove a file that nothing will read; if even that fails, the next boot sweeps it."""
    try:
        files.unlink(path)
    except OSError:
        return


def sweep_temporaries(
    files: FileSystem, directory: str, prefix: str = "", names: Sequence[str] | None = None
) -> list[str]:
    """Remove the temporary files that crashes left in a directory; return their paths.

    Only names that start with ``prefix``; ``names`` is the listing, for who has it already.
    No barrier: what comes back is swept again.
    """
    swept = []
    for name in files.listdir(directory) if names is None else names:
        if name.startswith(prefix) and _TEMPORARY.fullmatch(name):
            swept.append(join(directory, name))
            files.unlink(swept[-1])
    return swept
