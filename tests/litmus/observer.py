"""Random observers: checks that read a part of the disk, and may change it as a recovery does."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from powercut.explorer.recovery_unit import recovery_unit
from sim.choices import SeededChoices
from sim.disk.cache.operation import Operation, Sync, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.litmus.body import Calls
from tests.litmus.programs import DIRECTORIES, FILES, Program, run

Observer = list[tuple[Any, ...]]

_TEXTS: Final = ("A1", "B2", "C3")
_OFFSETS: Final = (0, 1, 511, 4095)
_LENGTHS: Final = (1, 2, 3, 600)
_READS: Final = (
    "exists", "read", "whole", "is new", "size", "names", "links", "mode", "same", "parent",
)  # fmt: skip
_UNITS: Final = ("unit", "unit", "unit that writes")
_CALLS: Final = (
    "write", "write", "append", "append", "truncate", "allocate", "rename", "rename",
    "rename directory", "link", "unlink", "mkdir", "rmdir", "chmod", "fsync", "fsync", "fdatasync",
)  # fmt: skip


def random_call(choices: SeededChoices) -> tuple[Any, ...]:
    """Return one call of a program, as ``programs.run`` takes it."""
    name = choices.pick("call", _CALLS)
    file = choices.pick("file", FILES)
    arguments: tuple[Any, ...] = (file,)
    match name:
        case "write":
            arguments = file, choices.pick("text", _TEXTS), choices.pick("offset", _OFFSETS)
        case "append":
            arguments = file, choices.pick("text", _TEXTS)
        case "truncate":
            arguments = file, choices.pick("size", (0, 1, 2, 512, 4096))
        case "allocate":
            arguments = file, choices.pick("offset", (0, 2)), choices.pick("size", (1, 3, 4096))
        case "rename" | "link":
            arguments = file, choices.pick("file", FILES)
        case "rename directory":
            name, places = "rename", ("d", "e", "h")
            arguments = choices.pick("place", places), choices.pick("place", (*places, "e/h"))
        case "mkdir" | "rmdir":
            arguments = (choices.pick("directory", ("e", "h", "d/e")),)
        case "chmod":
            arguments = file, choices.pick("mode", (0o600, 0o640))
        case "fsync" | "fdatasync":
            arguments = (choices.pick("synced", (*FILES, *DIRECTORIES)),)
    return name, *arguments


def random_step(choices: SeededChoices) -> tuple[Any, ...]:
    """Return one step of a program: a call, or a sync that fails."""
    if choices.integer("failed sync", 0, 15):
        return random_call(choices)
    return "failed fsync", choices.pick("file", FILES), choices.pick("policy", tuple(SyncFailure))


class Steps(NamedTuple):
    """The steps of random programs, and the files that random checks read."""

    step: Callable[[SeededChoices], tuple[Any, ...]]
    files: tuple[str, ...]


ANY: Final = Steps(random_step, FILES)


def random_program(choices: SeededChoices, most: int, steps: Steps = ANY) -> Program:
    """Return a program of up to so many calls."""
    return [steps.step(choices) for _ in range(choices.integer("calls", 1, most))]


class FailedSyncs:
    """Makes every sync fail."""

    def __init__(self, policy: SyncFailure) -> None:
        self._policy = policy

    def before(self, operation: Operation, _number: int) -> Operation:
        if isinstance(operation, Sync):
            return operation.failed(self._policy)
        return operation

    def after(self, _operation: Operation, _number: int) -> None:
        """Observe nothing."""

    def reading(self, _path: str, _inode: int, _offset: int, data: bytes) -> bytes:
        return data


def run_program(program: Program, process: Process) -> None:
    """Run a program, in which syncs may fail."""
    for name, *arguments in program:
        if name.startswith("failed "):
            process.disk.interposer = FailedSyncs(arguments.pop())
        with suppress(OSError):
            getattr(Calls(process), name.removeprefix("failed "))(*arguments)
        process.disk.interposer = None


def random_observer(choices: SeededChoices, *, writes: bool, steps: Steps = ANY) -> Observer:
    """Return an observer of up to five steps: reads, recovery units, and calls of a program."""
    changes = ("note", "do", "do", "do", "do", "do") if writes else ()
    return _random_steps(choices, (*_READS, *_UNITS, *changes), 5, steps)


def _random_steps(choices: SeededChoices, kinds: tuple[str, ...], most: int, of: Steps) -> Observer:
    steps: Observer = []
    for _ in range(choices.integer("steps", 1, most)):
        kind = choices.pick("step", kinds)
        file, other = choices.pick("file", of.files), choices.pick("file", of.files)
        match kind:
            case "unit":
                steps.append((kind, tuple(_random_steps(choices, _READS, 2, of))))
            case "unit that writes":
                steps.append(("unit", tuple(_random_steps(choices, ("exists", "do"), 2, of))))
            case "do":
                steps.append((kind, of.step(choices)))
            case "names" | "parent":
                steps.append((kind, choices.pick("directory", DIRECTORIES)))
            case "read":
                offset, length = choices.pick("offset", _OFFSETS), choices.pick("length", _LENGTHS)
                steps.append((kind, file, offset, length))
            case _:
                steps.append((kind, file, other))
    return steps


def observe(observer: Observer, disk: Disk) -> str:
    """Return everything that an observer reads; a step that reads False is its last."""
    process = Process(disk)
    seen: list[object] = []
    for step in observer:
        try:
            seen.append(_step(step, process))
        except OSError as refused:
            seen.append(refused.errno)
        if seen[-1] is False:
            break
    return repr(seen)


def _steps(process: Process, *steps: tuple[Any, ...]) -> list[object]:
    """Read as a recovery unit."""
    return [_step(step, process) for step in steps]


def _step(step: tuple[Any, ...], process: Process) -> object:
    match step[0]:
        case "unit":
            return recovery_unit(process, _steps, *step[1])
        case "do":
            run_program([step[1]], process)
            return None
        case "note":
            size = min(process.stat(f"/{step[1]}").st_size, 9)
            if size:
                run([("write", "g", f"A{size}", 0)], process)
            return size
    return _found(step, process, f"/{step[1]}")


def _found(step: tuple[Any, ...], process: Process, path: str) -> object:
    found: object
    match step[0]:
        case "exists":
            found = process.access(path, os.F_OK)
        case "read":
            found = _read(process, path, *step[2:])
        case "whole":
            found = _read(process, path, 0, process.stat(path).st_size)
        case "is new":
            found = _read(process, path, 0, 600)[:1] in {b"A", b"B", b"C"}
        case "names":
            found = process.listdir(path)
        case "parent":
            found = process.listdir(f"{path}/..")
        case "same":
            found = process.stat(path).st_ino == process.stat(f"/{step[2]}").st_ino
        case "size":
            found = process.stat(path).st_size
        case "links":
            found = process.lstat(path).st_nlink
        case _:
            found = process.lstat(path).st_mode
    return found


def _read(process: Process, path: str, offset: int, length: int) -> bytes:
    descriptor = process.open(path, os.O_RDONLY)
    content = process.pread(descriptor, length, offset)
    process.close(descriptor)
    return content
