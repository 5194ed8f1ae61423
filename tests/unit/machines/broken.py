"""Subjects that are broken on purpose, and one that is not, for tests of the machinery."""

from __future__ import annotations

from crash_tests.targets.atomic_file import AtomicFileTarget, atomic_file
from system.ports import FileSystem, Ids, OpenMode
from system.storage.transfer import write_all


def write_without_directory_barrier(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Write, fsync, rename; the rename is never made durable."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    file = files.open(temporary, OpenMode.CREATE)
    write_all(file, data, 0)
    file.fsync()
    file.close()
    files.replace(temporary, path)


def write_without_file_barrier(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Write, rename, make the name durable; the content never."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    file = files.open(temporary, OpenMode.CREATE)
    write_all(file, data, 0)
    file.close()
    files.replace(temporary, path)
    files.sync_dir("data")


def write_in_place(files: FileSystem, path: str, data: bytes, _ids: Ids) -> None:
    """Write over the file, cut it, fsync it: torn for a while."""
    if files.kind(path) is None:
        files.open(path, OpenMode.CREATE).close()
    file = files.open(path, OpenMode.WRITE)
    write_all(file, data, 0)
    file.truncate(len(data))
    file.fsync()
    file.close()
    files.sync_dir("data")


def undurable() -> AtomicFileTarget:
    return AtomicFileTarget("undurable", write_without_directory_barrier)


def unsynced() -> AtomicFileTarget:
    return AtomicFileTarget("unsynced", write_without_file_barrier)


def in_place() -> AtomicFileTarget:
    return AtomicFileTarget("in-place", write_in_place)


sound = atomic_file
