"""Programs that publish files correctly, with a name for each barrier, so it can be left out.

Each follows the manual pages and relies on the behaviour of no particular file system.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from oracles.history import History, Known
from oracles.violation import LostAck, TornRecord
from powercut.explorer.judge import Check
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk

WRITE: Final = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
OLD: Final = b"old"
NEW: Final = b"anew"
RECORDS: Final = (b"1one\n", b"2two\n")


class Steps:
    """The calls of a program, with the barrier named ``without`` left out.

    ``barriers`` are the names of all barriers that the program has reached.
    """

    def __init__(self, process: Process, ack: History, without: str = "") -> None:
        self.process = process
        self.ack = ack
        self.barriers: list[str] = []
        self._without = without

    def has(self, barrier: str) -> bool:
        """Record a barrier; return False if it is the one to leave out."""
        if barrier not in self.barriers:
            self.barriers.append(barrier)
        return barrier != self._without

    def write(self, path: str, data: bytes, flags: int = WRITE) -> None:
        """Write a file from its beginning and sync it."""
        descriptor = self.process.open(path, flags, 0o644)
        self.process.write(descriptor, data)
        self.fsync(descriptor, path)
        self.process.close(descriptor)

    def fsync(self, descriptor: int, name: str) -> None:
        if self.has(f"fsync {name}"):
            self.process.fsync(descriptor)

    def fdatasync(self, descriptor: int, name: str) -> None:
        if self.has(f"fdatasync {name}"):
            self.process.fdatasync(descriptor)

    def fsync_directory(self, path: str, name: str = "") -> None:
        descriptor = self.process.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.fsync(descriptor, name or path)
        self.process.close(descriptor)


@dataclass(frozen=True)
class Program:
    """A correct program; ``check`` is None for "old or new", ``nested`` crashes its recovery."""

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
        """Return the program as a workload, without one barrier."""
        return lambda process, ack: self.run(Steps(process, ack, barrier))


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
    return disk.unmounted()


START: Final = _start()


# -- one file, old or new -------------------------------------------------------------------


def _replace(steps: Steps) -> None:
    steps.ack.attempt({"/f": NEW})
    steps.write("/t", NEW)
    steps.process.replace("/t", "/f")
    steps.fsync_directory("/")
    steps.ack({"/f": NEW})


def _create(steps: Steps) -> None:
    steps.ack.attempt({"/g": NEW})
    steps.write("/t", NEW)
    steps.process.rename("/t", "/g")
    steps.fsync_directory("/")
    steps.ack({"/g": NEW})


def _publish_into_another_directory(steps: Steps) -> None:
    """Build the file in /d, and move it to /e when it is complete."""
    steps.ack.attempt({"/e/g": NEW})
    steps.write("/d/t", NEW)
    steps.process.rename("/d/t", "/e/g")
    steps.fsync_directory("/e")
    steps.fsync_directory("/d")
    steps.ack({"/e/g": NEW})


def _move_between_directories(steps: Steps) -> None:
    steps.ack.attempt({"/e/f": OLD})  # for a time, the file may have both names (class B2)
    steps.ack.attempt({"/d/f": None, "/e/f": OLD})
    steps.process.rename("/d/f", "/e/f")
    steps.fsync_directory("/e")
    steps.fsync_directory("/d")
    steps.ack({"/d/f": None, "/e/f": OLD})


def _move_into_a_moved_directory(steps: Steps) -> None:
    """A barrier on a directory does not make its own new name durable."""
    steps.ack.attempt({"/f": OLD, "/h/x": None})
    steps.process.rename("/d", "/h")
    steps.fsync_directory("/")
    steps.ack.attempt({"/h/x": OLD})
    steps.ack.attempt({"/f": None, "/h/x": OLD})
    steps.process.rename("/f", "/h/x")
    steps.fsync_directory("/h")
    steps.fsync_directory("/", "/ again")
    steps.ack({"/f": None, "/h/x": OLD})


def _publish_by_link(steps: Steps) -> None:
    steps.ack.attempt({"/g": NEW})
    steps.write("/t", NEW)
    steps.process.link("/t", "/g")
    steps.process.unlink("/t")
    steps.fsync_directory("/")
    steps.ack({"/g": NEW})


def _publish_unnamed(steps: Steps) -> None:
    steps.ack.attempt({"/d/g": NEW})
    descriptor = steps.process.open("/d", os.O_TMPFILE | os.O_WRONLY, 0o644)
    steps.process.write(descriptor, NEW)
    steps.fsync(descriptor, "the unnamed file")
    directory = steps.process.open("/d", os.O_RDONLY | os.O_DIRECTORY)
    steps.process.link(f"/proc/self/fd/{descriptor}", "g", dst_dir_fd=directory)
    steps.fsync(directory, "/d")
    steps.ack({"/d/g": NEW})


def _delete(steps: Steps) -> None:
    steps.ack.attempt({"/f": None})
    steps.process.unlink("/f")
    steps.fsync_directory("/")
    steps.ack({"/f": None})


def _replace_under_a_lock(steps: Steps) -> None:
    """A lock file left by a crash is stale; it protects running processes only."""
    lock = steps.process.open("/lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    steps.process.write(lock, b"17\n")
    _replace(steps)
    steps.process.close(lock)
    steps.process.unlink("/lock")


def _scratch_file(steps: Steps) -> None:
    """A file that was unlinked while open has no name once the directory is synced."""
    steps.ack.attempt({"/t": b""})
    descriptor = steps.process.open("/t", WRITE | os.O_EXCL, 0o600)
    steps.process.unlink("/t")
    steps.fsync_directory("/")
    steps.ack({"/t": None})
    steps.process.write(descriptor, NEW)
    steps.process.fsync(descriptor)
    steps.process.write(descriptor, NEW)


# -- new directories ------------------------------------------------------------------------


def _directories_from_the_top(steps: Steps) -> None:
    steps.ack.attempt({"/a/b/f": NEW})
    steps.process.mkdir("/a")
    steps.fsync_directory("/")
    steps.process.mkdir("/a/b")
    steps.fsync_directory("/a")
    steps.write("/a/b/t", NEW)
    steps.process.rename("/a/b/t", "/a/b/f")
    steps.fsync_directory("/a/b")
    steps.ack({"/a/b/f": NEW})


def _directories_from_the_bottom(steps: Steps) -> None:
    steps.ack.attempt({"/a/b/f": NEW})
    steps.process.mkdir("/a")
    steps.process.mkdir("/a/b")
    steps.write("/a/b/t", NEW)
    steps.process.rename("/a/b/t", "/a/b/f")
    for directory in ("/a/b", "/a", "/"):
        steps.fsync_directory(directory)
    steps.ack({"/a/b/f": NEW})


def _publish_directory(steps: Steps) -> None:
    """Build a directory under another name, and rename it when it is complete."""
    both = {"/p/f": NEW, "/p/g": OLD}
    steps.ack.attempt(both)
    steps.process.mkdir("/t")
    steps.write("/t/f", NEW)
    steps.write("/t/g", OLD)
    steps.fsync_directory("/t")
    steps.process.rename("/t", "/p")
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
    steps.process.replace("/t", "/f")
    steps.fsync_directory("/", "/ again")
    steps.ack({"/f": b"v2", "/v2": NEW})


def _check_pointer(process: Process, known: Known) -> None:
    """The target of /f is complete; after the acknowledgement /f points to v2."""
    pointer = _content(process, "/f")
    if known.acknowledged and pointer != b"v2":
        raise LostAck("the pointer is old", actual=pointer)
    if pointer not in (OLD, b"v2") or (pointer == b"v2" and _content(process, "/v2") != NEW):
        raise TornRecord("the pointer leads nowhere", pointer=pointer, to=_content(process, "/v2"))


# -- writing in place -----------------------------------------------------------------------


def _rewrite(steps: Steps) -> None:
    """Rewrite a file in place: not atomic, and durable at the acknowledgement."""
    steps.ack.attempt(None)
    descriptor = steps.process.open("/f", os.O_WRONLY)
    steps.process.ftruncate(descriptor, 0)
    steps.process.write(descriptor, NEW)
    steps.fsync(descriptor, "/f")
    steps.ack(NEW)
    steps.process.close(descriptor)


def _several_descriptors(steps: Steps) -> None:
    """A barrier through one descriptor covers the writes through another."""
    steps.ack.attempt(None)
    first, second, third = (steps.process.open("/f", os.O_RDWR) for _ in range(3))
    steps.process.pwrite(first, b"an", 0)
    steps.process.close(first)
    steps.process.pwrite(second, b"ew", 2)
    steps.fsync(third, "/f")
    steps.ack(NEW)


def _check_rewritten(process: Process, known: Known) -> None:
    if known.acknowledged and _content(process, "/f") != NEW:
        raise LostAck("an acknowledged write in place is lost", actual=_content(process, "/f"))


def _undo(steps: Steps) -> None:
    """Change /f and /d/f together, in place; the old content is kept until both are durable."""
    steps.ack.attempt({"/f": b"new", "/d/f": b"new"})
    steps.write("/undo", OLD + b".")
    steps.fsync_directory("/")
    for path in ("/f", "/d/f"):
        steps.write(path, b"new", os.O_WRONLY)
    steps.process.unlink("/undo")
    steps.fsync_directory("/", "/ again")
    steps.ack({"/f": b"new", "/d/f": b"new"})


def _check_undo(process: Process, known: Known) -> None:
    """Roll back an unfinished change; then both files are old, or both are new."""
    if _content(process, "/undo") == OLD + b".":
        steps = Steps(process, History(lambda: 0))
        for path in ("/f", "/d/f"):
            steps.write(path, OLD, os.O_WRONLY)
        process.unlink("/undo")
        steps.fsync_directory("/")
    found = {path: _content(process, path) for path in ("/f", "/d/f")}
    if found["/f"] != found["/d/f"] or found["/f"] not in (OLD, b"new"):
        raise TornRecord("the two do not belong together", actual=found)
    if known.acknowledged and found["/f"] != b"new":
        raise LostAck("an acknowledged change was rolled back", actual=found)


# -- logs -----------------------------------------------------------------------------------


def _log(steps: Steps) -> None:
    descriptor = steps.process.open("/log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    steps.fsync_directory("/")
    for record in RECORDS:
        steps.process.write(descriptor, record)
        steps.fsync(descriptor, f"after {record[:1].decode()}")
        steps.ack(record)


def _log_with_synchronous_writes(steps: Steps) -> None:
    synchronous = os.O_DSYNC if steps.has("O_DSYNC") else 0
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | synchronous
    descriptor = steps.process.open("/log", flags, 0o644)
    steps.fsync_directory("/")
    for record in RECORDS:
        steps.process.write(descriptor, record)
        steps.ack(record)


def _preallocated_log(steps: Steps) -> None:
    """Allocate the space once, then only overwrite: the size never changes again."""
    descriptor = steps.process.open("/log", os.O_CREAT | os.O_WRONLY, 0o644)
    steps.process.posix_fallocate(descriptor, 0, 10)
    steps.fsync(descriptor, "the space")
    steps.fsync_directory("/")
    for index, record in enumerate(RECORDS):
        steps.process.pwrite(descriptor, record, index * 5)
        steps.fdatasync(descriptor, f"after {record[:1].decode()}")
        steps.ack(record)


def _check_log(process: Process, known: Known) -> None:
    """Every acknowledged record is in the log, in order."""
    content = _content(process, "/log") or b""
    for record in known.acknowledged:
        assert isinstance(record, bytes)
        if not content.startswith(record):
            raise LostAck("a record is gone", record=record, remaining=content)
        content = content[len(record) :]


def _content(process: Process, path: str) -> bytes | None:
    try:
        descriptor = process.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    return process.pread(descriptor, process.fstat(descriptor).st_size, 0)


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
        Program("preallocated log", _preallocated_log, _check_log),
    )
}
