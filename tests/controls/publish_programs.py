"""Programs that publish files correctly, each barrier of them with a name, so it can be left out.

Each is what a careful engineer writes after reading the manual pages: nothing in it relies
on what one file system happens to do.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from oracles.history import History, Known
from oracles.violation import LostAck, TornRecord
from powercut.explorer.explore import Check
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk

WRITE: Final = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
OLD: Final = b"old"
NEW: Final = b"anew"
RECORDS: Final = (b"1one\n", b"2two\n")


class Steps:
    """The calls of a program, with one barrier left out: ``without``, by name.

    ``barriers`` are the names of all those that were met.
    """

    def __init__(self, disk: Process, ack: History, without: str = "") -> None:
        self.disk = disk
        self.ack = ack
        self.barriers: list[str] = []
        self._without = without

    def keeps(self, barrier: str) -> bool:
        """Note a barrier; say whether it is there."""
        if barrier not in self.barriers:
            self.barriers.append(barrier)
        return barrier != self._without

    def write(self, path: str, data: bytes, flags: int = WRITE) -> None:
        """Write a file anew and sync it."""
        descriptor = self.disk.open(path, flags, 0o644)
        self.disk.write(descriptor, data)
        self.fsync(descriptor, path)
        self.disk.close(descriptor)

    def fsync(self, descriptor: int, name: str) -> None:
        if self.keeps(f"fsync {name}"):
            self.disk.fsync(descriptor)

    def fdatasync(self, descriptor: int, name: str) -> None:
        if self.keeps(f"fdatasync {name}"):
            self.disk.fdatasync(descriptor)

    def fsync_directory(self, path: str) -> None:
        descriptor = self.disk.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.fsync(descriptor, path)
        self.disk.close(descriptor)


@dataclass(frozen=True)
class Program:
    """``check`` is None for "old or new". ``nested``: how often its recovery is crashed."""

    name: str
    run: Callable[[Steps], None]
    check: Check | None = None
    nested: int = 0

    def barriers(self) -> list[str]:
        """Return the names of its barriers, in order."""
        disk = Disk(START)
        steps = Steps(Process(disk), History(lambda: disk.operations))
        self.run(steps)
        return steps.barriers

    def without(self, barrier: str) -> Callable[[Process, History], None]:
        """Return it as a workload, less one barrier."""
        return lambda disk, ack: self.run(Steps(disk, ack, barrier))


def _start() -> Image:
    """Return a disk with /f, /d and /e, of which /d holds another f, all durable."""
    disk = Disk()
    process = Process(disk)
    process.mkdir("/d")
    process.mkdir("/e")
    for path in ("/f", "/d/f"):
        descriptor = process.open(path, WRITE, 0o644)
        process.write(descriptor, OLD)
        process.close(descriptor)
    process.sync()
    return disk.snapshot()


START: Final = _start()


# -- one file, old or new -------------------------------------------------------------------


def _replace(steps: Steps) -> None:
    steps.ack.attempt({"/f": NEW})
    steps.write("/t", NEW)
    steps.disk.replace("/t", "/f")
    steps.fsync_directory("/")
    steps.ack({"/f": NEW})


def _create(steps: Steps) -> None:
    steps.ack.attempt({"/g": NEW})
    steps.write("/t", NEW)
    steps.disk.rename("/t", "/g")
    steps.fsync_directory("/")
    steps.ack({"/g": NEW})


def _publish_into_another_directory(steps: Steps) -> None:
    """Build the file in /d, and move it to /e when it is whole."""
    steps.ack.attempt({"/e/g": NEW})
    steps.write("/d/t", NEW)
    steps.disk.rename("/d/t", "/e/g")
    steps.fsync_directory("/e")
    steps.fsync_directory("/d")
    steps.ack({"/e/g": NEW})


def _move_between_directories(steps: Steps) -> None:
    moved = {"/d/f": None, "/e/f": OLD}
    steps.ack.attempt(moved)
    steps.disk.rename("/d/f", "/e/f")
    steps.fsync_directory("/e")
    steps.fsync_directory("/d")
    steps.ack(moved)


def _move_into_a_moved_directory(steps: Steps) -> None:
    """A barrier on a directory says nothing about its own new name."""
    steps.ack.attempt({"/f": OLD, "/h/x": None})
    steps.disk.rename("/d", "/h")
    steps.fsync_directory("/")
    steps.ack.attempt({"/f": None, "/h/x": OLD})
    steps.disk.rename("/f", "/h/x")
    steps.fsync_directory("/h")
    steps.ack({"/f": None, "/h/x": OLD})


def _publish_by_link(steps: Steps) -> None:
    steps.ack.attempt({"/g": NEW})
    steps.write("/t", NEW)
    steps.disk.link("/t", "/g")
    steps.disk.unlink("/t")
    steps.fsync_directory("/")
    steps.ack({"/g": NEW})


def _publish_unnamed(steps: Steps) -> None:
    steps.ack.attempt({"/d/g": NEW})
    descriptor = steps.disk.open("/d", os.O_TMPFILE | os.O_WRONLY, 0o644)
    steps.disk.write(descriptor, NEW)
    steps.fsync(descriptor, "the unnamed file")
    directory = steps.disk.open("/d", os.O_RDONLY | os.O_DIRECTORY)
    steps.disk.link(f"/proc/self/fd/{descriptor}", "g", dst_dir_fd=directory)
    steps.fsync(directory, "/d")
    steps.ack({"/d/g": NEW})


def _delete(steps: Steps) -> None:
    steps.ack.attempt({"/f": None})
    steps.disk.unlink("/f")
    steps.fsync_directory("/")
    steps.ack({"/f": None})


def _replace_under_a_lock(steps: Steps) -> None:
    """A lock file that a crash leaves is stale; it guards nothing but running processes."""
    lock = steps.disk.open("/lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    steps.disk.write(lock, b"17\n")
    _replace(steps)
    steps.disk.close(lock)
    steps.disk.unlink("/lock")


def _scratch_file(steps: Steps) -> None:
    """A file that is unlinked while open is seen by nobody after the directory is synced."""
    steps.ack.attempt({"/t": b""})
    descriptor = steps.disk.open("/t", WRITE | os.O_EXCL, 0o600)
    steps.disk.unlink("/t")
    steps.fsync_directory("/")
    steps.ack({"/t": None})
    steps.disk.write(descriptor, NEW)
    steps.disk.fsync(descriptor)
    steps.disk.write(descriptor, NEW)


# -- new directories ------------------------------------------------------------------------


def _directories_from_the_top(steps: Steps) -> None:
    steps.ack.attempt({"/a/b/f": NEW})
    steps.disk.mkdir("/a")
    steps.fsync_directory("/")
    steps.disk.mkdir("/a/b")
    steps.fsync_directory("/a")
    steps.write("/a/b/t", NEW)
    steps.disk.rename("/a/b/t", "/a/b/f")
    steps.fsync_directory("/a/b")
    steps.ack({"/a/b/f": NEW})


def _directories_from_the_bottom(steps: Steps) -> None:
    steps.ack.attempt({"/a/b/f": NEW})
    steps.disk.mkdir("/a")
    steps.disk.mkdir("/a/b")
    steps.write("/a/b/t", NEW)
    steps.disk.rename("/a/b/t", "/a/b/f")
    for directory in ("/a/b", "/a", "/"):
        steps.fsync_directory(directory)
    steps.ack({"/a/b/f": NEW})


def _publish_directory(steps: Steps) -> None:
    """Build a directory beside its place, and give it its name when it is whole."""
    both = {"/p/f": NEW, "/p/g": OLD}
    steps.ack.attempt(both)
    steps.disk.mkdir("/t")
    steps.write("/t/f", NEW)
    steps.write("/t/g", OLD)
    steps.fsync_directory("/t")
    steps.disk.rename("/t", "/p")
    steps.fsync_directory("/")
    steps.ack(both)


# -- two files ------------------------------------------------------------------------------


def _data_before_pointer(steps: Steps) -> None:
    steps.ack.attempt({"/f": OLD, "/v2": None})
    for content in (b"", NEW):
        steps.ack.attempt({"/f": OLD, "/v2": content})
    steps.ack.attempt({"/f": b"v2", "/v2": NEW})
    steps.write("/v2", NEW)
    steps.fsync_directory("/")
    steps.write("/t", b"v2")
    steps.disk.replace("/t", "/f")
    descriptor = steps.disk.open("/", os.O_RDONLY | os.O_DIRECTORY)
    steps.fsync(descriptor, "/ again")
    steps.ack({"/f": b"v2", "/v2": NEW})


def _check_pointer(disk: Process, known: Known) -> None:
    """What /f points to is there and whole; after the acknowledgement it points to v2."""
    pointer = _content(disk, "/f")
    if known.acknowledged and pointer != b"v2":
        raise LostAck("the pointer is old", actual=pointer)
    if pointer not in (OLD, b"v2") or (pointer == b"v2" and _content(disk, "/v2") != NEW):
        raise TornRecord("the pointer leads nowhere", pointer=pointer, to=_content(disk, "/v2"))


# -- writing in place -----------------------------------------------------------------------


def _rewrite(steps: Steps) -> None:
    """Not atomic, and it does not say so; durable when it says so."""
    steps.ack.attempt(None)
    descriptor = steps.disk.open("/f", os.O_WRONLY)
    steps.disk.ftruncate(descriptor, 0)
    steps.disk.write(descriptor, NEW)
    steps.fsync(descriptor, "/f")
    steps.ack(NEW)
    steps.disk.close(descriptor)


def _several_descriptors(steps: Steps) -> None:
    """A barrier through one descriptor covers what went through another."""
    steps.ack.attempt(None)
    first, second, third = (steps.disk.open("/f", os.O_RDWR) for _ in range(3))
    steps.disk.pwrite(first, b"an", 0)
    steps.disk.close(first)
    steps.disk.pwrite(second, b"ew", 2)
    steps.fsync(third, "/f")
    steps.ack(NEW)


def _check_rewritten(disk: Process, known: Known) -> None:
    if known.acknowledged and _content(disk, "/f") != NEW:
        raise LostAck("what was written in place is gone", actual=_content(disk, "/f"))


def _undo(steps: Steps) -> None:
    """Change /f and /d/f together, in place: what they held is kept until both are durable."""
    steps.ack.attempt({"/f": b"new", "/d/f": b"new"})
    steps.write("/undo", OLD + b".")
    steps.fsync_directory("/")
    for path in ("/f", "/d/f"):
        steps.write(path, b"new", os.O_WRONLY)
    steps.disk.unlink("/undo")
    descriptor = steps.disk.open("/", os.O_RDONLY | os.O_DIRECTORY)
    steps.fsync(descriptor, "/ again")
    steps.ack({"/f": b"new", "/d/f": b"new"})


def _check_undo(disk: Process, known: Known) -> None:
    """Roll back what was not finished; then both are old, or both are new."""
    if _content(disk, "/undo") == OLD + b".":
        steps = Steps(disk, History(lambda: 0))
        for path in ("/f", "/d/f"):
            steps.write(path, OLD, os.O_WRONLY)
        disk.unlink("/undo")
        steps.fsync_directory("/")
    found = {path: _content(disk, path) for path in ("/f", "/d/f")}
    if found["/f"] != found["/d/f"] or found["/f"] not in (OLD, b"new"):
        raise TornRecord("the two do not belong together", actual=found)
    if known.acknowledged and found["/f"] != b"new":
        raise LostAck("an acknowledged change was rolled back", actual=found)


# -- logs -----------------------------------------------------------------------------------


def _log(steps: Steps) -> None:
    descriptor = steps.disk.open("/log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    steps.fsync_directory("/")
    for record in RECORDS:
        steps.disk.write(descriptor, record)
        steps.fsync(descriptor, f"after {record[:1].decode()}")
        steps.ack(record)


def _log_with_synchronous_writes(steps: Steps) -> None:
    synchronous = os.O_DSYNC if steps.keeps("O_DSYNC") else 0
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | synchronous
    descriptor = steps.disk.open("/log", flags, 0o644)
    steps.fsync_directory("/")
    for record in RECORDS:
        steps.disk.write(descriptor, record)
        steps.ack(record)


def _log_with_room(steps: Steps) -> None:
    """Make room once, then only overwrite: no size ever changes again."""
    descriptor = steps.disk.open("/log", os.O_CREAT | os.O_WRONLY, 0o644)
    steps.disk.posix_fallocate(descriptor, 0, 10)
    steps.fsync(descriptor, "the room")
    steps.fsync_directory("/")
    for index, record in enumerate(RECORDS):
        steps.disk.pwrite(descriptor, record, index * 5)
        steps.fdatasync(descriptor, f"after {record[:1].decode()}")
        steps.ack(record)


def _check_log(disk: Process, known: Known) -> None:
    """Read records until one is not whole; every acknowledged one must be among them."""
    content = _content(disk, "/log") or b""
    for record in known.acknowledged:
        assert isinstance(record, bytes)
        if not content.startswith(record):
            raise LostAck("a record is gone", record=record, rest=content)
        content = content[len(record) :]


def _content(disk: Process, path: str) -> bytes | None:
    try:
        descriptor = disk.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    return disk.pread(descriptor, disk.fstat(descriptor).st_size, 0)


PROGRAMS: Final = {
    program.name: program
    for program in (
        Program("replace", _replace),
        Program("create", _create),
        Program("publish into another directory", _publish_into_another_directory),
        Program("move between directories", _move_between_directories),
        Program("move into a moved directory", _move_into_a_moved_directory),
        Program("publish by link", _publish_by_link),
        Program("publish unnamed", _publish_unnamed),
        Program("delete", _delete),
        Program("replace under a lock", _replace_under_a_lock),
        Program("scratch file", _scratch_file),
        Program("directories from the top", _directories_from_the_top),
        Program("directories from the bottom", _directories_from_the_bottom),
        Program("publish directory", _publish_directory),
        Program("data before pointer", _data_before_pointer, _check_pointer),
        Program("rewrite", _rewrite, _check_rewritten),
        Program("several descriptors", _several_descriptors, _check_rewritten),
        Program("undo", _undo, _check_undo, nested=1),
        Program("log", _log, _check_log),
        Program("log with synchronous writes", _log_with_synchronous_writes, _check_log),
        Program("log with room", _log_with_room, _check_log),
    )
}
