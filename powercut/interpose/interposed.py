"""``interposed``: run unmodified Python on the disk of a process."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from types import TracebackType
from typing import Any, Final

from powercut.interpose import sqlite_connect
from powercut.interpose.dbm_libraries import DefaultDatabase
from powercut.interpose.guard import EventGuard, watch
from powercut.interpose.installation import install
from powercut.interpose.lifetime import Lifetime, check_root_path, ensure_root
from powercut.interpose.router import ROUTER
from sim.disk.calls.process import Process
from sim.errors import HarnessError, PowerOff, SimulatedCrash
from sim.loop.sandbox import SANDBOX

DEFAULT_ROOT: Final = "/disk"
_HOMES: Final = ("HOME", "TMPDIR")
_FOLLOW_HOME: Final = (
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TEMP", "TMP",
)  # fmt: skip

_NO_NAMES: Final = "/proc/tty/ldisc"
"""An empty directory of Linux in which nothing can be created."""


def interposed(
    process: Process, root: str = DEFAULT_ROOT, *, sandbox: bool = True
) -> Interposition:
    """Route the calls of a ``with`` block below ``root`` to ``process``.

    Inside, ``open``, ``io``, ``os``, ``fcntl``, ``mmap`` and ``sqlite3``, and all Python code on
    top of them, see the disk of ``process`` at paths below ``root``. Relative paths, HOME and
    TMPDIR start there. All other paths are those of the real machine, where nothing may be
    written, no process started and no connection made: ``EscapedSimulation`` names the line.
    ``sandbox=False`` allows it.

    ``root`` must not exist on the real machine. The directory is made on the disk, durably, if
    it is missing. A block may be left and entered again with the same process.

    The block raises ``HarnessError`` for an unusable root, inside another block, and on anything
    but CPython 3.11 to 3.15 with the GIL, on Linux.

    Example::

        process = Process(Disk())
        with interposed(process):
            Path("/disk/note").write_text("hello")
    """
    return Interposition(process, root, sandbox=sandbox)


class Interposition:
    """The context manager of ``interposed``."""

    def __init__(self, process: Process, root: str, *, sandbox: bool) -> None:
        self._process = process
        self._root = root
        self._sandbox = sandbox
        self._state: _Machine | None = None

    def __enter__(self) -> Process:
        if ROUTER.lifetime is not None:
            raise HarnessError("a process is interposed already; leave its block first")
        with SANDBOX.suspended():
            return self._enter()

    def _enter(self) -> Process:
        check_root(self._root)
        install()
        lifetime = _lifetime_of(self._process, self._root)
        guard = EventGuard(lifetime, lifetime.refuse) if self._sandbox else None
        self._state = _Machine(lifetime)
        self._state.enter()
        watch(guard)
        ROUTER.lifetime = lifetime
        sqlite_connect.enter(lifetime)
        SANDBOX.is_routed = True
        return self._process

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        SANDBOX.is_routed = False
        lifetime, ROUTER.lifetime = ROUTER.lifetime, None
        assert lifetime is not None
        assert self._state is not None
        with SANDBOX.suspended():
            watch(None)
            sqlite_connect.leave()
            if not lifetime.poisoned:
                lifetime.settle()
            self._state.leave()
        escape, lifetime.escape = lifetime.escape, None
        if escape is None or escape is failure or isinstance(failure, SimulatedCrash | PowerOff):
            return
        raise escape


@contextmanager
def strictly(process: Process, root: str, *, strict: bool) -> Iterator[None]:
    """Route the calls of the block to ``process``; if ``strict``, refuse clocks and threads too."""
    with interposed(process, root), SANDBOX if strict else nullcontext():
        yield


def check_root(root: str) -> None:
    """Raise ``HarnessError`` unless ``root`` can be the root of an interposed program."""
    check_root_path(root)
    if ROUTER.lifetime is None and os.path.lexists(root):
        raise HarnessError(
            f"root={root!r} exists on this machine, and a write that escapes from the disk would "
            "go there; name one that does not exist, with --root or root="
        )


_last: list[Lifetime] = []
_ended: dict[int, threading.Thread] = {}


def _lifetime_of(process: Process, root: str) -> Lifetime:
    """Return the lifetime of ``process``: that of the last block, or a new one."""
    last = _last[0] if _last else None
    if last is not None and last.process is process and last.root == root:
        return last
    if last is not None:
        _abandon(last)
    ensure_root(process, root)
    lifetime = Lifetime(process, root)
    lifetime.disown(_ended)
    _last[:] = [lifetime]
    return lifetime


def _abandon(lifetime: Lifetime) -> None:
    """Take from an ended lifetime its threads and finalizers."""
    for ident in [ident for ident, thread in _ended.items() if not thread.is_alive()]:
        del _ended[ident]
    _ended.update((thread.ident or 0, thread) for thread in lifetime.threads if thread.is_alive())
    for finalizer in lifetime.finalizers:
        finalizer.detach()
    for mapping in lifetime.mappings:
        mapping.release()
    lifetime.mappings.clear()


def _finalizers() -> set[Any]:
    return set(vars(weakref.finalize)["_registry"])


class _Machine:
    """State of the interpreter that depends on the machine, for the time of a block."""

    def __init__(self, lifetime: Lifetime) -> None:
        self._lifetime = lifetime
        self._environment: dict[str, str | None] = {}
        self._tempfile: tuple[Any, ...] = ()
        self._database = DefaultDatabase()
        self._path: list[str] = []
        self._writes_bytecode = False
        self._directory = ""
        self._random: Any = None
        self._threads = frozenset(threading.enumerate())
        self._finalizers = _finalizers()

    def enter(self) -> None:
        root, process = self._lifetime.root, self._lifetime.process
        # Relative entries would lead to the disk from here on.
        self._path = sys.path[:]
        sys.path[:] = [os.path.abspath(entry) for entry in sys.path]
        self._directory = os.getcwd()
        nowhere = _nowhere()
        self._random = random.getstate()
        random.seed(_seed(process))
        self._environment = {name: os.environ.get(name) for name in (*_HOMES, *_FOLLOW_HOME)}
        os.environ.update(dict.fromkeys(_HOMES, root))
        for name in _FOLLOW_HOME:
            os.environ.pop(name, None)
        names = vars(tempfile)
        self._tempfile = names["tempdir"], names["_name_sequence"]
        names["tempdir"] = root
        names["_name_sequence"] = _names(process)
        self._database.enter()
        self._writes_bytecode = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        os.fchdir(nowhere)

    def leave(self) -> None:
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        vars(tempfile)["tempdir"], vars(tempfile)["_name_sequence"] = self._tempfile
        self._database.leave()
        sys.path[:] = self._path
        sys.dont_write_bytecode = self._writes_bytecode
        os.chdir(self._directory)
        random.setstate(self._random)
        self._lifetime.threads |= set(threading.enumerate()) - self._threads
        self._lifetime.finalizers |= _finalizers() - self._finalizers


@cache
def _nowhere() -> int:
    """Return the descriptor of the real current directory while a process is interposed.

    A relative path that a C library opens itself fails there with ENOENT, and writes nothing. The
    directory exists: with one that was removed, CPython 3.13.0 to 3.13.2 may raise SystemError if a
    module lacks an attribute (its issue 130932). Where it is missing, a removed one is used.
    """
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    if os.path.isdir(_NO_NAMES):
        return os.open(_NO_NAMES, flags)
    path = tempfile.mkdtemp(prefix="powercut-")
    descriptor = os.open(path, flags)
    os.rmdir(path)
    return descriptor


def _names(process: Process) -> Any:
    """Return a generator of temporary names that depends only on the disk."""
    sequence: Any = vars(tempfile)["_RandomNameSequence"]()
    vars(sequence).update(_rng_pid=os.getpid(), _rng=random.Random(_seed(process)))
    return sequence


def _seed(process: Process) -> int:
    """Return a seed that depends only on the disk."""
    return process.disk.next_inode << 32 | process.disk.operations
