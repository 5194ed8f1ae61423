"""Runs a program on a simulated disk, and records the moment of each line that it prints.

One loop serves the mount, reads the program's stdout and waits for its end. The number of
operations before a line is exact: a line that the program printed before it made a request is in
the pipe when the request is there. So ``poll`` looks for a request first, then at the pipe; a line
that it finds is taken, and then one request is answered.
"""

from __future__ import annotations

import ctypes
import os
import select
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from powercut.fuse.connection import FuseConnection
from powercut.fuse.disk_mount import MountWay, mounted
from powercut.fuse.disk_server import JOURNAL_BYTES, DiskServer
from powercut.fuse.program import Program, start
from powercut.fuse.recording import Acknowledgement
from powercut.fuse.watched_calls import CallKind, answer, receive
from sim.disk.disk import Disk
from sim.errors import HarnessError

SHELL: Final = ("/bin/sh", "-c")
_PIPE_BYTES: Final = 1 << 16
_MOST_NAMES: Final = 3


@dataclass(frozen=True, slots=True)
class Run:
    """One finished program: its exit status, the lines of its stdout, sentences about effects
    that did not reach the disk, and the numbers of the operations that wrote mapped pages.
    """

    exit_status: int
    lines: tuple[Acknowledgement, ...]
    notes: tuple[str, ...]
    mapped: tuple[int, ...]


class _Lines:
    """The lines of a pipe, each with the number of operations before it."""

    def __init__(self, pipe: int, disk: Disk) -> None:
        self.lines: list[Acknowledgement] = []
        self._pipe = pipe
        self._disk = disk
        self._begun = b""

    def drain(self) -> None:
        """Take everything that is in the pipe."""
        data = b" "
        while data:
            try:
                data = os.read(self._pipe, _PIPE_BYTES)
            except BlockingIOError:
                return
            *complete, self._begun = (self._begun + data).split(b"\n")
            self.lines += [self._of(line) for line in complete]

    def finish(self) -> tuple[Acknowledgement, ...]:
        """Return all lines; the last one needs no line end."""
        self.drain()
        if self._begun:
            self.lines.append(self._of(self._begun))
        return tuple(self.lines)

    def _of(self, line: bytes) -> Acknowledgement:
        return Acknowledgement(self._disk.operations, os.fsdecode(line))


class _Calls:
    """Carries out the calls of a program that FUSE does not pass on."""

    def __init__(self, listener: int, server: DiskServer, mount_point: str, lines: _Lines) -> None:
        self._listener = listener
        self._server = server
        self._mount_point = mount_point
        self._lines = lines

    def carry_out(self) -> None:
        """Carry out the call that waits, after the lines that the program printed before it."""
        call = receive(self._listener)
        if call is None:
            return
        self._lines.drain()
        path = "/" if call.kind is CallKind.SYNC else self._path_on_disk(call.path())
        if path is not None and call.is_barrier:
            if call.kind is CallKind.SYNC_FILE_RANGE:
                self._server.sync_range(path)
            else:
                self._server.disk.sync_all()
        answer(self._listener, call, done=path is not None)

    def _path_on_disk(self, path: str) -> str | None:
        if path == self._mount_point:
            return "/"
        inside = path.startswith(f"{self._mount_point}/")
        return path.removeprefix(self._mount_point) if inside else None


@contextmanager
def new_mount_point() -> Iterator[str]:
    """A new directory to mount a disk on, until the context ends."""
    path = os.path.realpath(tempfile.mkdtemp(prefix="powercut-"))
    try:
        yield path
    finally:
        with suppress(OSError):
            os.rmdir(path)


@contextmanager
def _one_processor() -> Iterator[None]:
    """Keep this thread, and the processes that it starts, on the processor on which it runs.

    A request and its reply each wake the other side. Between two processors of a virtual machine
    that takes longer than the rest of a request; on one it is a switch between two processes.
    """
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {ctypes.CDLL(None).sched_getcpu()})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run_program(
    disk: Disk,
    command: tuple[str, ...],
    mount_point: str,
    way: MountWay,
    timeout_s: float | None = None,
) -> Run:
    """Mount ``disk`` at ``mount_point``, run ``command`` in it until it ends, and unmount the disk.

    The program shares one processor with this process. Afterwards no process of the program is
    left. Raises ``HarnessError`` if the program cannot be started or writes more than the journal
    holds, and ``TimeoutError``.
    """
    server = DiskServer(disk)
    with _one_processor(), mounted(server, mount_point, way) as connection:
        program = start(command, mount_point)
        try:
            lines = _Lines(program.output, disk)
            calls = _Calls(program.calls, server, mount_point, lines)
            _serve_until_end(connection, program, lines, calls, timeout_s)
            exit_status = program.exit_status()
            found = lines.finish()
            # Others may leave a server that they have just killed; whether it still runs is chance.
            leaves_its_work = not disk.operations and program.has_left_processes()
        finally:
            # A call that is not answered would keep its process, also a killed one.
            connection.close()
            program.end()
    if server.is_full:
        limit = JOURNAL_BYTES >> 20
        raise HarnessError(
            f"the program wrote more than {limit} MiB, the most that a journal holds; give it "
            "less to do"
        )
    notes = _notes(server, watched=program.calls >= 0, leaves_its_work=leaves_its_work)
    mapped = sorted(number for numbers in server.mapped.values() for number in numbers)
    return Run(exit_status, found, tuple(notes), tuple(mapped))


def _serve_until_end(
    connection: FuseConnection,
    program: Program,
    lines: _Lines,
    calls: _Calls,
    timeout_s: float | None,
) -> None:
    poll = select.poll()
    for descriptor in (connection.descriptor, program.calls, program.output, program.ended):
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
    end = None if timeout_s is None else time.monotonic() + timeout_s
    only_a_request = [(connection.descriptor, select.POLLIN)]
    while True:
        left_ms = None if end is None else max(0.0, end - time.monotonic()) * 1000
        found = poll.poll(left_ms)
        if found == only_a_request and connection.serve():  # nearly always
            continue
        if not found:
            raise TimeoutError
        if _serve_ready(dict(found), poll, connection, program, lines, calls):
            return


def _serve_ready(
    ready: dict[int, int],
    poll: select.poll,
    connection: FuseConnection,
    program: Program,
    lines: _Lines,
    calls: _Calls,
) -> bool:
    """Take the lines that are there, then answer one request; return whether nothing is left."""
    if program.output in ready:
        lines.drain()
        if not ready[program.output] & select.POLLIN:  # every process has closed it
            poll.unregister(program.output)
    if connection.descriptor in ready:
        if not connection.serve():
            raise HarnessError("the program unmounted its disk")
    elif program.calls in ready:
        if ready[program.calls] & select.POLLIN:
            calls.carry_out()
        else:  # every process that was watched has ended
            poll.unregister(program.calls)
    else:
        return program.ended in ready
    return False


def _notes(server: DiskServer, *, watched: bool, leaves_its_work: bool) -> Iterator[str]:
    if leaves_its_work:
        yield (
            "processes that the program had started still ran when it ended, and were ended: what "
            "they write later is not seen; let the program wait for them"
        )
    if not watched:
        yield (
            "sync(2) and syncfs are not seen on this machine: if the program calls them, losses "
            "before them are no failures"
        )
    if server.mapped:
        yield (
            f"stores to mapped memory of {_listed(server.mapped)} reached the disk only when the "
            "kernel wrote the pages: at msync, munmap or close; until then a kill seems to lose "
            "them, which it does not"
        )
    if server.mapped_syncs:
        yield (
            f"each msync or fdatasync of {_listed(server.mapped_syncs)} counted for the whole "
            "file; an msync of some pages guarantees less"
        )
    if server.ranges:
        yield (
            f"sync_file_range of {_listed(server.ranges)} counted as fdatasync, "
            "which guarantees more"
        )
    for what, paths in server.refused.items():
        yield f"{what} are not modelled and were refused: {_listed(paths)}"


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - _MOST_NAMES} more" if len(shown) > _MOST_NAMES else ""
    return ", ".join(shown[:_MOST_NAMES]) + more
