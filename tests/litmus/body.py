"""What a litmus test is made of: a few calls on a disk, and a way to write down what is left.

An outcome is one line: ``f=A2 t=-`` says that f holds two bytes ``A`` and that t is not
there. Contents are runs: ``A5000``, ``0`` for NUL (``A2,02`` is two A and two NULs), ``S``
for stale bytes; ``empty`` is a file without a byte. ``f=->g`` is a symbolic link.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import groupby
from typing import Final

from sim.disk.cache.inode import Inode
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk

Body = Callable[["Calls"], None]

_LETTERS: Final = "ABCD"


class Calls:
    """The calls of a body, short enough to read at a glance; paths are below the root."""

    def __init__(self, process: Process) -> None:
        self._handle = process

    def create(self, *paths: str) -> None:
        for path in paths:
            self._handle.close(self._handle.open(f"/{path}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))

    def write(self, path: str, text: str, at: int = 0) -> None:
        """Write ``text`` (runs, as in an outcome) at ``at``, creating the file if need be."""
        descriptor = self._handle.open(f"/{path}", os.O_CREAT | os.O_WRONLY)
        self._handle.pwrite(descriptor, content_of(text), at)
        self._handle.close(descriptor)

    def append(self, path: str, text: str) -> None:
        descriptor = self._handle.open(f"/{path}", os.O_WRONLY | os.O_APPEND)
        self._handle.write(descriptor, content_of(text))
        self._handle.close(descriptor)

    def truncate(self, path: str, size: int) -> None:
        descriptor = self._handle.open(f"/{path}", os.O_WRONLY)
        self._handle.ftruncate(descriptor, size)
        self._handle.close(descriptor)

    def rename(self, path: str, to: str) -> None:
        self._handle.rename(f"/{path}", f"/{to}")

    def link(self, path: str, to: str) -> None:
        self._handle.link(f"/{path}", f"/{to}")

    def unlink(self, path: str) -> None:
        self._handle.unlink(f"/{path}")

    def mkdir(self, *paths: str) -> None:
        for path in paths:
            self._handle.mkdir(f"/{path}")

    def fsync(self, path: str = "") -> None:
        """Sync a file or a directory; without a path, the root directory."""
        self._sync(path, self._handle.fsync)

    def fdatasync(self, path: str) -> None:
        self._sync(path, self._handle.fdatasync)

    def _sync(self, path: str, barrier: Callable[[int], None]) -> None:
        descriptor = self._handle.open(f"/{path}", os.O_RDONLY)
        barrier(descriptor)
        self._handle.close(descriptor)

    def sync(self) -> None:
        self._handle.sync()


def prepared(setup: Body) -> Image:
    """Return the disk after ``setup``, all of it durable."""
    disk = Disk()
    setup(Calls(Process(disk)))
    Process(disk).sync()
    return disk.snapshot()


def outcomes(
    model: PersistenceModel, setup: Body, body: Body, *, anywhere: bool = False
) -> set[str]:
    """Return every outcome of a power cut after ``body``, or, ``anywhere``, at any point of it."""
    disk = Disk(prepared(setup), model)
    body(Calls(Process(disk)))
    names = sorted(_paths_ever(disk))
    seen: set[str] = set()
    unsynced = Unsynced(model, disk.image.platter)
    for number, operation in enumerate(disk.journal, 1):
        if anywhere:
            seen |= _now(unsynced, disk.next_inode, names)
        unsynced.advance(operation, number)
    return seen | _now(unsynced, disk.next_inode, names)


def _now(unsynced: Unsynced, next_inode: int, names: list[str]) -> set[str]:
    return {
        outcome_of(Image.of_platter(state.inodes, next_inode), names)
        for state in StateSpace(unsynced).all()
    }


def _paths_ever(disk: Disk) -> set[str]:
    """Return every path that the setup left or the body named, files only."""
    paths = {path for path, inode in disk.image.tree() if not inode.is_directory}
    for operation in disk.journal:
        named = {operation.path, getattr(operation, "to_path", "")}
        paths |= {path for path in named if path not in {"", "/"}}
    directories = {path for path, inode in disk.snapshot().tree() if inode.is_directory}
    return paths - directories


def outcome_of(image: Image, names: list[str]) -> str:
    """Write down what is left of these paths."""
    tree = dict(image.tree())
    return " ".join(f"{name[1:]}={_shown(tree.get(name))}" for name in names)


def _shown(inode: Inode | None) -> str:
    if inode is None:
        return "-"
    if inode.is_symlink:
        return f"->{inode.link_text}"
    content = inode.read(0, inode.size)
    return runs_of(content) or "empty"


def runs_of(content: bytes) -> str:
    """Write content as runs."""
    letters = (_letter(byte) for byte in content)
    return ",".join(f"{letter}{len(list(run))}" for letter, run in groupby(letters))


def _letter(byte: int) -> str:
    if not byte:
        return "0"
    return chr(byte) if chr(byte) in _LETTERS else "S"


def content_of(text: str) -> bytes:
    """Return the bytes that runs stand for."""
    return b"".join(run[0].encode() * int(run[1:]) for run in text.split(","))
