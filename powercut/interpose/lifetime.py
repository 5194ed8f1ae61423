"""One lifetime of an interposed program: which paths and descriptors belong to the disk.

Paths below ``root`` are on the disk, at the same path there, so no result of a call needs a
translation. ``root`` does not exist on the real machine: a call that is not routed fails there
with ENOENT and writes nothing. Descriptors of the disk start far above those of a kernel, and
at another number in each lifetime, so that a late ``close`` cannot hit a file of the next one.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import threading
import time
from _thread import RLock, get_ident
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from xxhash import xxh3_128_digest

from powercut.interpose.dotted_path import resolve_dots
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.process import Process
from sim.errors import HarnessError, PowerOff, UnsupportedOperation

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_P = ParamSpec("_P")
_R = TypeVar("_R")

_DIGEST_BYTES: Final = 16
_KNOWN_PATHS: Final = 8192
_WINDOW: Final = 4096
"""Numbers of descriptors that one lifetime may use."""
_WINDOWS: Final = ((1 << 31) - FIRST_DESCRIPTOR) // _WINDOW - 1
_window: Final = count()
_THROUGH_DESCRIPTOR: Final = re.compile(
    r"/(?:proc/(?:(?:thread-)?self|\d+)(?:/task/\d+)?/fd|dev/fd)/(\d+)(?:/.*)?",
    re.ASCII | re.DOTALL,
)
"""The paths that lead to what a descriptor refers to, or on from there (proc(5))."""


class Mapping(Protocol):
    """Memory that is mapped to a file of the disk."""

    @property
    def is_used(self) -> bool:
        """Whether the program has not dropped it."""
        ...

    def before_call(self) -> None:
        """Write the pages that the program changed since the last call."""
        ...

    def after_call(self) -> None:
        """Read the bytes that the last call changed."""
        ...

    def release(self) -> None:
        """Give the memory back."""
        ...


class Lifetime:
    """The lifetime of ``process`` under interposition, with the calls of a ``FileProcess``.

    ``number`` decides its descriptors; by default lifetimes are counted.

    ``on_disk`` is True while the current directory is on the disk. ``escape`` is the first
    use of the real machine that was refused, which the program may have swallowed. ``threads``
    and ``finalizers`` are those that it started and registered. ``databases`` is its VFS of SQLite.

    ``known`` has for each path that was used whether it is on the disk. ``is_plain`` is True while
    a call needs nothing but the lock: no file is mapped, and no thread of another lifetime runs.
    """

    def __init__(self, process: Process, root: str, number: int | None = None) -> None:
        self.process = process
        self.number = next(_window) if number is None else number
        self.root = root
        self.on_disk = True
        self.escape: HarnessError | None = None
        self.lock = RLock()
        self.mappings: list[Mapping] = []
        self.databases: object = None
        self.threads: set[threading.Thread] = set()
        self.finalizers: set[Any] = set()
        self.is_plain = True
        self.known: dict[str, bool] = {}
        self._below = root + "/"
        self._ended: dict[int, threading.Thread] = {}
        self._drawn = count()
        # Neither changes the disk, so neither needs the lock.
        self.lseek = process.lseek
        self.is_directory = process.is_directory
        process.use_descriptors_from(FIRST_DESCRIPTOR + _WINDOW * (1 + self.number % _WINDOWS))

    # -- routing ---------------------------------------------------------------------------

    def where(self, path: Any, dir_fd: Any = None) -> tuple[bool, Any]:
        """Return whether ``path``, or a descriptor in its place, is on the disk; and the path.

        The path is the one that was given, unless it leads across the root by ``..``. Raises
        ``UnsupportedOperation`` for a path through a descriptor of the disk.
        """
        if type(path) is str:
            text = path
        elif isinstance(path, int):
            return path >= FIRST_DESCRIPTOR, path
        else:
            try:
                is_buffer = isinstance(path, bytearray | memoryview)
                text = os.fsdecode(bytes(path) if is_buffer else path)
            except (TypeError, ValueError):
                return False, path
        if dir_fd is not None and not text.startswith("/"):
            return isinstance(dir_fd, int) and dir_fd >= FIRST_DESCRIPTOR, path
        found = self.known.get(text)
        if found is None:
            self._check_descriptor(text)
            found, other = self._find(text)
            if other is not None:
                return found, os.fsencode(other) if isinstance(path, bytes) else other
            # A link in a path with ".." may change.
            if ".." not in text:
                if len(self.known) >= _KNOWN_PATHS:
                    self.known.clear()
                self.known[text] = found
        return found, path

    def _find(self, text: str) -> tuple[bool, str | None]:
        """Return whether a path is on the disk, and the path there if it is another one."""
        has_dots = ".." in text
        if text.startswith("/"):
            whole = text
        elif self.on_disk and not has_dots:
            return True, None
        else:
            try:
                whole = posixpath.join(os.getcwd(), text)
            except OSError:
                # The directory was removed; it has a parent nevertheless.
                return self.on_disk, None
        if has_dots:
            place, names = resolve_dots(whole, self.root)
            found = posixpath.join(place, *names)
            on_disk = self.holds(place) or (".." not in names and self.holds(_clean(found)))
            return on_disk, None if on_disk == self.holds(whole) else found
        on_disk = self.holds(text) or self.holds(_clean(whole))
        return on_disk, None if not on_disk or text is whole else whole

    def _check_descriptor(self, path: str) -> None:
        """Refuse a path that leads through a descriptor of the disk, which the kernel lacks."""
        found = _THROUGH_DESCRIPTOR.fullmatch(path)
        if found is None or int(found[1]) < FIRST_DESCRIPTOR:
            return
        refusal = UnsupportedOperation(
            f"{path} is not modelled by the simulated disk: give the descriptor in place of the "
            f"path, as in os.stat({found[1]}); only os.link takes the path /proc/self/fd/{found[1]}"
        )
        self.refuse(refusal)
        raise refusal

    def holds(self, path: str) -> bool:
        """Return whether a normalized absolute path is the root, or below it."""
        return path.startswith(self._below) or path == self.root

    def moved(self, *, on_disk: bool) -> None:
        """Note that the current directory is on the disk now, or on the real machine."""
        self.on_disk = on_disk
        self.known.clear()

    # -- calls -----------------------------------------------------------------------------

    def call(
        self,
        method: Callable[Concatenate[Process, _P], _R],
        *arguments: _P.args,
        **options: _P.kwargs,
    ) -> _R:
        """Make one call of the process; one thread at a time."""
        with self.lock:
            if not self.is_plain:
                self._before_call()
            try:
                return method(self.process, *arguments, **options)
            except HarnessError as mistake:
                self.refuse(mistake)
                raise
            finally:
                for mapping in self.mappings:
                    mapping.after_call()

    def random_bytes(self, size: int) -> bytes:
        """Return bytes that depend only on the disk, and differ at each call."""
        disk = self.process.disk
        first = b"%d:%d:%d" % (disk.next_inode, disk.operations, next(self._drawn))
        pieces = -(-size // _DIGEST_BYTES)
        return b"".join(xxh3_128_digest(b"%d:" % n + first) for n in range(pieces))[:size]

    def waiting_call(self, method: Callable[..., None], *arguments: Any, **options: bool) -> None:
        """Make a call that fails with EAGAIN until another thread releases a lock."""
        while True:
            try:
                return self.call(method, *arguments, **options)
            except OSError as error:
                if error.errno not in {errno.EAGAIN, errno.EACCES}:
                    raise
            time.sleep(0.001)

    def refuse(self, mistake: HarnessError) -> None:
        """Keep the first refusal, to raise it again if the program swallows it."""
        if self.escape is None:
            self.escape = mistake

    def _before_call(self) -> None:
        thread = self._ended.get(get_ident())
        if thread is not None and threading.current_thread() is thread:
            raise PowerOff("the process that started this thread is dead")
        self._write_back()

    def settle(self) -> None:
        """Make every change that the program has made so far an operation of the disk."""
        with self.lock:
            self._write_back()

    def _write_back(self) -> None:
        for mapping in self.mappings[:]:
            mapping.before_call()
            if not mapping.is_used:
                self.mappings.remove(mapping)
                mapping.release()
        self.is_plain = not (self.mappings or self._ended)

    def map(self, mapping: Mapping) -> None:
        """Keep the memory of a file equal to the file."""
        self.mappings.append(mapping)
        self.is_plain = False

    def disown(self, threads: dict[int, threading.Thread]) -> None:
        """Refuse every call of these threads, which belong to processes that have ended."""
        self._ended = threads
        self.is_plain = not (self.mappings or threads)

    # -- the calls of a file object ---------------------------------------------------------
    # Each is written out, because ``open`` makes several of them.

    @property
    def poisoned(self) -> bool:
        return self.process.poisoned

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        if self.is_plain:
            try:
                with self.lock:
                    return self.process.open(path, flags, mode)
            except HarnessError as mistake:
                self.refuse(mistake)
                raise
        return self.call(Process.open, path, flags, mode)

    def close(self, fd: int) -> None:
        if self.is_plain:
            with self.lock:
                self.process.close(fd)
        else:
            self.call(Process.close, fd)

    def read(self, fd: int, length: int, /) -> bytes:
        if self.is_plain:
            with self.lock:
                return self.process.read(fd, length)
        return self.call(Process.read, fd, length)

    def write(self, fd: int, data: ReadableBuffer, /) -> int:
        if self.is_plain:
            with self.lock:
                return self.process.write(fd, data)
        return self.call(Process.write, fd, data)

    def ftruncate(self, fd: int, length: int, /) -> None:
        self.call(Process.ftruncate, fd, length)

    def fstat(self, fd: int) -> os.stat_result:
        return self.call(Process.fstat, fd)


def _clean(path: str) -> str:
    """Return a path without repeated slashes; POSIX leaves the meaning of two at its start open."""
    return posixpath.normpath("/" + path.lstrip("/"))


def check_root_path(root: str) -> None:
    """Raise ``HarnessError`` unless ``root`` is a path that the root of a program can have."""
    if not root.startswith("/") or root == "/" or posixpath.normpath(root) != root:
        raise HarnessError(
            f"root={root!r} must be an absolute path such as /disk, without '..' and without a "
            "slash at its end"
        )


def ensure_root(process: Process, root: str) -> None:
    """Make ``root`` and its parents durable directories, if they are missing, and enter it.

    Raises as ``check_root_path``.
    """
    check_root_path(root)
    path = ""
    for name in root.split("/")[1:]:
        parent, path = path or "/", f"{path}/{name}"
        with suppress(FileExistsError):
            process.mkdir(path)
            descriptor = process.open(parent, os.O_RDONLY)
            process.fsync(descriptor)
            process.close(descriptor)
    process.chdir(root)
