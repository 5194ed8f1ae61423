"""A program under test: started in a directory that this process itself serves.

``subprocess`` waits until the child has changed its directory and called ``exec``. The directory
is on the mount, so this process would wait for itself. Therefore ``start`` forks, and the loop of
the caller serves the mount while the child starts.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from powercut.fuse.orphans import adopt_orphans, end_orphans, end_with_parent, has_orphans
from powercut.fuse.watched_calls import watch_this_process
from sim.errors import HarnessError

_CANNOT_START: Final = 127


@dataclass(frozen=True, slots=True)
class Program:
    """A process that leads a session of its own; ``ended`` is readable when it has ended.

    ``output`` has its stdout, and does not block. ``calls`` has the calls that are watched
    (``watched_calls.py``), or is -1 if they cannot be. ``refusal`` has the reason if it could
    not start. ``others`` are the children that this process had before.
    """

    process: int
    ended: int
    output: int
    calls: int
    refusal: int
    others: frozenset[int]

    def exit_status(self) -> int:
        """Wait for the end; return the exit status, or 128 and the signal as shells do.

        Raises ``HarnessError`` if the program could not be started.
        """
        _, status = os.waitpid(self.process, 0)
        code = os.waitstatus_to_exitcode(status)
        reason = os.read(self.refusal, 4096)
        if reason:
            raise HarnessError(f"the program cannot start: {os.fsdecode(reason)}")
        return code if code >= 0 else 128 - code

    def has_left_processes(self) -> bool:
        """Return whether processes that it has started go on after its end."""
        return has_orphans(self.others)

    def end(self) -> None:
        """Kill every process that is left of it, daemons as well, and close the descriptors."""
        with suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.process, 0)
        end_orphans(self.others)
        for descriptor in (self.ended, self.output, self.calls, self.refusal):
            if descriptor >= 0:
                os.close(descriptor)


def located(command: Sequence[str]) -> tuple[str, ...]:
    """Return ``command`` with the absolute path of its program.

    A relative path starts from the current directory, and not from the mount in which the
    program will run. Raises ``HarnessError`` if there is no such program.
    """
    name, *arguments = command
    path = shutil.which(name)
    if path is None and os.path.isfile(name):
        raise HarnessError(
            f"{name!r} is not executable; chmod +x it, or give its interpreter first, such as sh"
        )
    if path is None:
        raise HarnessError(f"there is no program {name!r} that can be executed; check its path")
    return os.path.abspath(path), *arguments


def start(command: tuple[str, ...], directory: str) -> Program:
    """Start ``command``, whose program has an absolute path, in ``directory``."""
    output, its_output = os.pipe()
    refusal, its_refusal = os.pipe()
    ours, theirs = socket.socketpair()
    others = adopt_orphans()
    process = os.fork()
    if not process:
        _execute(command, directory, its_output, its_refusal, theirs)
    os.close(its_output)
    os.close(its_refusal)
    theirs.close()
    with ours:
        _, calls, _, _ = socket.recv_fds(ours, 1, 1)
    os.set_blocking(output, False)
    watched = calls[0] if calls else -1
    return Program(process, os.pidfd_open(process), output, watched, refusal, others)


def _execute(
    command: tuple[str, ...], directory: str, output: int, refusal: int, watcher: socket.socket
) -> NoReturn:
    """Become the program, in the child."""
    try:
        os.setsid()
        end_with_parent(signal.SIGKILL)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(output, 1)
        _send_calls(watcher)
        os.chdir(directory)
        os.execv(command[0], command)
    except OSError as error:
        hint = "; a script begins with a line such as #!/bin/sh" * (error.errno == errno.ENOEXEC)
        os.write(refusal, os.fsencode(f"{command[0]}: {error.strerror}{hint}"))
    finally:
        os._exit(_CANNOT_START)


def _send_calls(watcher: socket.socket) -> None:
    try:
        calls = watch_this_process()
    except OSError:
        watcher.send(b"-")
    else:
        socket.send_fds(watcher, [b"+"], [calls])
        os.close(calls)
