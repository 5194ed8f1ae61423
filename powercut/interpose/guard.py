"""The guard: refuses uses of the real machine by the interposed program.

It reads the audit events of Python (PEP 578), so it also sees functions that were stored where
the installation does not look. Refused are: a path below the root that reached the real
system, writes to the real disk, child processes, further interpreters and network connections.
Clock, random numbers, threads, and the socket pair of asyncio pass. ``stat``, ``access``,
``readlink`` and calls of C libraries raise no event: below the root they fail with ENOENT.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from inspect import currentframe
from types import FrameType
from typing import Any, Final

from powercut.interpose.lifetime import Lifetime
from powercut.interpose.program_calls import FORK_EXEC, INTERPRETERS
from powercut.interpose.router import ROUTER
from powercut.place import Stack
from sim.errors import EscapedSimulation

_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_CHANGES: Final = {
    "os.chmod": (0,), "os.chown": (0,), "os.link": (0, 1), "os.mkdir": (0,), "os.remove": (0,),
    "os.rename": (0, 1), "os.rmdir": (0,), "os.symlink": (1,), "os.truncate": (0,),
    "os.utime": (0,),
}  # fmt: skip
_READS: Final = {"os.listdir": (0,), "os.scandir": (0,), "os.chdir": (0,)}
_PROGRAMS: Final = frozenset({
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
    "subprocess.Popen", FORK_EXEC,
})  # fmt: skip
_NETWORK: Final = frozenset({
    "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyaddr",
    "socket.gethostbyname", "socket.sendmsg", "socket.sendto",
})  # fmt: skip
_SOCKET: Final = "socket.__new__"
EVENTS: Final = frozenset(
    {"open", *_CHANGES, *_READS, *_PROGRAMS, *INTERPRETERS, _SOCKET, *_NETWORK}
)
_FORK_SERVER: Final = "multiprocessing.forkserver"
# It only counts semaphores: the locks of multiprocessing need it in a single process as well.
_TRACKER: Final = "multiprocessing.resource_tracker"
_IMPORTING: Final = "<frozen importlib."
_TOOLS: Final = (
    "_pytest/", "_virtualenv.py", "coverage/", "hypothesis/", "pluggy/", "pytest_cov/",
    "pytest_timeout", "xdist/",
)  # fmt: skip


class EventGuard:
    """Refuses audit events. ``lifetime`` is None around a workload that takes a process."""

    def __init__(self, lifetime: Lifetime | None, refuse: Callable[[Any], None]) -> None:
        self._lifetime = lifetime
        self._refuse = refuse
        self._stack = Stack()

    def check(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS:
            return
        if event == "open":
            self._check_open(*arguments)
        elif event in _CHANGES or event in _READS:
            self._check_paths(event, arguments)
        elif event in INTERPRETERS:
            self._started(f"{event} starts another interpreter")
        elif event == _SOCKET:
            # The server starts behind its socket, whose directory would be one of the disk.
            if any(_is_of(frame, _FORK_SERVER) for frame in _outwards(currentframe())):
                self._started(f"{_FORK_SERVER} starts another process")
        elif event in _NETWORK:
            self._escaped(f"{event} uses the network", "replace that part by a fake")
        elif self._starts_a_program(event, arguments):
            self._started(f"{event} starts another process{_program(arguments)}")

    def _check_open(self, path: Any, mode: Any, flags: int) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        text = os.fsdecode(path)
        self._check_below("open", text)
        if flags & _WRITES and not _is_device(text):
            shown = f"({text!r}, {mode!r})" if mode else f"({text!r})"
            self._written(f"open{shown}")

    def _check_paths(self, event: str, arguments: tuple[Any, ...]) -> None:
        positions = _CHANGES.get(event) or _READS[event]
        for position in positions:
            path = arguments[position]
            if not isinstance(path, str | bytes | os.PathLike):
                continue
            text = os.fsdecode(path)
            self._check_below(event, text)
            # A directory that exists is not made: the call fails with EEXIST.
            if event in _CHANGES and not (event == "os.mkdir" and os.path.lexists(text)):
                self._written(f"{event}({text!r})")

    def _check_below(self, call: str, path: str) -> None:
        lifetime = self._lifetime
        if lifetime is not None and lifetime.holds(path):
            self._escaped(
                f"{call}({path!r}) reached the real system past the disk",
                "call it through os, io or pathlib; a C library needs powercut try",
            )

    def _written(self, call: str) -> None:
        if self._lifetime is None:
            remedy = "use process, or take only ack and the program is interposed"
        else:
            remedy = f"keep its files below {self._lifetime.root}"
        self._escaped(f"{call} writes to the real disk", remedy)

    def _started(self, description: str) -> None:
        self._escaped(
            description, "only this process sees the disk: run the command with powercut try"
        )

    @staticmethod
    def _starts_a_program(event: str, arguments: tuple[Any, ...]) -> bool:
        """Return False for a program that does not exist, which fails with ENOENT."""
        if event == "subprocess.Popen":
            return shutil.which(os.fsdecode(arguments[0])) is not None
        if event == FORK_EXEC:
            programs, command = arguments[:2]
            is_tracker = any(_TRACKER in os.fsdecode(each) for each in command)
            return not is_tracker and any(map(os.path.exists, programs))
        return event not in {"os.exec", "os.posix_spawn"} or os.path.exists(arguments[0])

    def _escaped(self, description: str, remedy: str) -> None:
        place = self._stack.place(currentframe())
        if place is not None and place.file.startswith(_TOOLS):
            return
        at = f", at {place.where} in {place.function}" if place is not None else ""
        if any(map(_is_importing, _outwards(currentframe()))):
            remedy = "a module does so when it is imported: import it at the top of your own one"
        escape = EscapedSimulation(f"{description}{at}; {remedy}")
        self._refuse(escape)
        raise escape


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_device(path: str) -> bool:
    """Return whether a path leads to a device or a pipe, which keeps nothing that is written."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _is_importing(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_IMPORTING)


def _is_of(frame: FrameType, module: str) -> bool:
    return frame.f_globals.get("__name__") == module


def _program(arguments: tuple[Any, ...]) -> str:
    if not arguments or not arguments[0]:
        return ""
    path = arguments[0]
    return f" ({os.fsdecode(path if isinstance(path, str | bytes | os.PathLike) else path[0])})"


def watch(guard: EventGuard | None) -> None:
    """Make ``guard`` the one of this process; None refuses nothing."""
    ROUTER.guard = guard
