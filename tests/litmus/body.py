"""The parts of a litmus test: a few calls on a disk, and a notation for outcomes.

An outcome is one line: in ``f=A2 t=-`` the file f has two bytes ``A``, and there is no t.
Contents are runs: ``A5000``, ``0`` for NUL (``A2,02`` is two A and two NULs), ``S`` for
stale bytes; ``empty`` is a file of no bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from faults.crash_point import CrashKind
from oracles.history import History
from powercut.explorer.crash_state import done_at
from powercut.explorer.journals import Journals
from powercut.explorer.limits import Limits
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk

Body = Callable[["Calls"], None]

_LETTERS: Final = b"ABCD"
_LETTER_OF_BYTE: Final = bytes(
    ord("0") if not byte else byte if byte in _LETTERS else ord("S") for byte in range(256)
)
_RUN: Final = re.compile(r"(.)\1*")


class Calls:
    """The calls of a body; paths are relative to the root."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def create(self, *paths: str) -> None:
        for path in paths:
            self._process.close(
                self._process.open(f"/{path}", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            )

    def write(self, path: str, text: str, at: int = 0, flags: int = 0) -> None:
        """Write ``text`` (runs, as in an outcome) at byte ``at``, and create a missing file."""
        descriptor = self._process.open(f"/{path}", os.O_CREAT | os.O_WRONLY | flags)
        self._process.pwrite(descriptor, content_of(text), at)
        self._process.close(descriptor)

    def write_synced(self, path: str, text: str, at: int = 0) -> None:
        """Write as ``write`` does, under ``O_DSYNC``."""
        self.write(path, text, at, os.O_DSYNC)

    def write_direct(self, path: str, text: str, at: int = 0) -> None:
        """Write as ``write`` does, as if the file were open with ``O_DIRECT``."""
        descriptor = self._process.open(f"/{path}", os.O_CREAT | os.O_WRONLY)
        disk, number = self._process.disk, self._process.fstat(descriptor).st_ino
        disk.write(disk.inode(number), at, content_of(text), f"/{path}", direct=True)
        self._process.close(descriptor)

    def append(self, path: str, text: str) -> None:
        descriptor = self._process.open(f"/{path}", os.O_WRONLY | os.O_APPEND)
        self._process.write(descriptor, content_of(text))
        self._process.close(descriptor)

    def truncate(self, path: str, size: int) -> None:
        descriptor = self._process.open(f"/{path}", os.O_WRONLY)
        self._process.ftruncate(descriptor, size)
        self._process.close(descriptor)

    def allocate(self, path: str, offset: int, length: int) -> None:
        descriptor = self._process.open(f"/{path}", os.O_WRONLY)
        self._process.posix_fallocate(descriptor, offset, length)
        self._process.close(descriptor)

    def drop_pages(self, path: str, offset: int, length: int) -> None:
        """Drop whole pages from the page cache; ``length`` 0 is to the end of the file."""
        descriptor = self._process.open(f"/{path}", os.O_RDONLY)
        self._process.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)
        self._process.close(descriptor)

    def rename(self, path: str, to: str) -> None:
        self._process.rename(f"/{path}", f"/{to}")

    def rename_over_open(self, path: str, to: str, text: str) -> None:
        """Rename over a file that is open, write to that file, and sync it."""
        descriptor = self._process.open(f"/{to}", os.O_WRONLY)
        self.rename(path, to)
        self._process.pwrite(descriptor, content_of(text), 0)
        self._process.fsync(descriptor)
        self._process.close(descriptor)

    def link(self, path: str, to: str) -> None:
        self._process.link(f"/{path}", f"/{to}")

    def unlink(self, path: str) -> None:
        self._process.unlink(f"/{path}")

    def mkdir(self, *paths: str) -> None:
        for path in paths:
            self._process.mkdir(f"/{path}")

    def rmdir(self, path: str) -> None:
        self._process.rmdir(f"/{path}")

    def chmod(self, path: str, mode: int) -> None:
        self._process.chmod(f"/{path}", mode)

    def fsync(self, path: str = "") -> None:
        """Sync a file or a directory; without a path, the root directory."""
        self._sync(path, self._process.fsync)

    def fdatasync(self, path: str) -> None:
        self._sync(path, self._process.fdatasync)

    def _sync(self, path: str, barrier: Callable[[int], None]) -> None:
        descriptor = self._process.open(f"/{path}", os.O_RDONLY)
        barrier(descriptor)
        self._process.close(descriptor)

    def sync(self) -> None:
        self._process.sync()


def prepared(setup: Body) -> Image:
    """Return the disk after ``setup``, all of it durable."""
    disk = Disk()
    setup(Calls(Process(disk)))
    return disk.unmounted()


def outcomes(
    model: PersistenceModel, setup: Body, body: Body, *, anywhere: bool = False
) -> set[str]:
    """Return every outcome of a power cut after ``body``, or at any point with ``anywhere``."""
    disk = Disk(prepared(setup), model)
    body(Calls(Process(disk)))
    names = sorted(paths_ever(disk))
    seen: set[str] = set()
    unsynced = Unsynced(model, disk.image.platter)
    for number, operation in enumerate(disk.journal, 1):
        if anywhere:
            seen |= _now(unsynced, disk.next_inode, names)
        unsynced.advance(operation, number)
    return seen | _now(unsynced, disk.next_inode, names)


def killed(model: PersistenceModel, setup: Body, body: Body) -> set[str]:
    """Return every outcome of a kill before, during or after the last operation of ``body``."""
    disk = Disk(prepared(setup), model)
    body(Calls(Process(disk)))
    journals = Journals(History(lambda: 0), Limits(), lambda _key, _depth: False)
    names, last = sorted(paths_ever(disk)), len(disk.journal)
    return {
        _outcome_of(crashed.image, names)
        for crashed in journals.crashes(disk.journal, model)
        for point in crashed.crashes
        if point.kind is CrashKind.KILL and done_at(point) >= last - 1
    }


def _now(unsynced: Unsynced, next_inode: int, names: list[str]) -> set[str]:
    return {
        _outcome_of(Image.of_platter(state.inodes, next_inode), names)
        for state in StateSpace(unsynced).all()
    }


def _outcome_of(image: Image, names: list[str]) -> str:
    return line_of(names, {path: inode.read(0, inode.size) for path, inode in image.tree()})


def paths_ever(disk: Disk) -> set[str]:
    """Return the path of every file that the setup left or the body named."""
    paths = {path for path, inode in disk.image.tree() if not inode.is_directory}
    for operation in disk.journal:
        named = {operation.path, getattr(operation, "to_path", "")}
        paths |= {path for path in named if path not in {"", "/"}}
    directories = {path for path, inode in disk.snapshot().tree() if inode.is_directory}
    return paths - directories


def line_of(names: list[str], contents: Mapping[str, bytes]) -> str:
    """Return the outcome of these paths; those without content are missing."""
    return " ".join(f"{name[1:]}={_shown(contents.get(name))}" for name in names)


def _shown(content: bytes | None) -> str:
    return "-" if content is None else runs_of(content) or "empty"


@cache
def runs_of(content: bytes) -> str:
    """Return the runs of a content."""
    letters = content.translate(_LETTER_OF_BYTE).decode("ascii")
    return ",".join(f"{run[1]}{len(run[0])}" for run in _RUN.finditer(letters))


def content_of(text: str) -> bytes:
    """Return the content of runs."""
    return b"".join(run[0].encode() * int(run[1:]) for run in text.split(","))
