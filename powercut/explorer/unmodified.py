"""Workloads that take no process: they run interposed, each in a process of its own.

The workload runs in a process that is forked after all imports, and each check in another one
that was forked without it (``interposed_check.py``). So nothing that a program keeps in memory can
answer for the disk.
"""

from __future__ import annotations

import inspect
import os
import pickle
import posixpath
import re
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple

from oracles.history import History, HistoryEntry, Known
from oracles.violation import shown
from powercut.explorer.limits import Limits
from powercut.interpose.apart import run_apart
from powercut.interpose.installation import install
from powercut.interpose.interposed import strictly
from powercut.interpose.refusal import sentence_on
from powercut.interpose.router import ROUTER
from powercut.interpose.seed import rooted
from powercut.place import ENGINE, Place, defined_at, raised_at
from powercut.place_recorder import PlaceRecorder
from powercut.user_function import idle_kind
from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError, UnsupportedOperation, described, text_of

UnmodifiedWorkload = Callable[[History], None]
UnmodifiedCheck = Callable[[Known], None]

_OF_C: Final = re.compile(
    r"no such file|bad file descriptor|\bi/?o error|(unable|cannot|failed) to open|cannot open|"
    r"working directory",
    re.IGNORECASE,
)
"""How C libraries report that they have not found the disk; their errors have many types."""
_MOST_PARAMETERS: Final = 2
_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


class Record(NamedTuple):
    """One run of an unmodified workload, as plain values; ``image`` is the disk before it."""

    image: Image
    operations: list[Operation]
    entries: list[HistoryEntry]
    places: dict[int, Place]


def takes_one(function: Callable[..., Any], last: str = "ack") -> bool:
    """Return whether a workload or check has one required parameter, and so is interposed.

    ``last`` is the name of its last parameter. Raises ``HarnessError`` if it has not one or two,
    and for a coroutine function or a generator function: a call of one does nothing.
    """
    name = getattr(function, "__qualname__", function)
    if kind := idle_kind(function):
        raise HarnessError(
            f"{name} is a {kind}, and a call of it does nothing; pass a function without yield, "
            f"or one that calls asyncio.run(...){defined_at(function)}"
        )
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    required = [each for each in positional if each.default is each.empty]
    if len(required) == 1:
        return True
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if len(required) > _MOST_PARAMETERS or (len(positional) < _MOST_PARAMETERS and not takes_any):
        raise HarnessError(
            f"{name} has {len(required)} required parameters; it must take {last}, or process and "
            f"{last}{defined_at(function)}"
        )
    return False


# -- workloads -----------------------------------------------------------------------------------


class _Acknowledgements(History):
    """A history that keeps a copy of each value: a program may change its own later."""

    def attempt(self, value: object) -> None:
        super().attempt(_copied(value))

    def __call__(self, value: object) -> None:
        if ROUTER.lifetime is not None:
            ROUTER.lifetime.settle()
        super().__call__(_copied(value))


def _copied(value: object) -> object:
    try:
        return pickle.loads(pickle.dumps(value))
    except Exception as error:
        raise HarnessError(
            f"ack({shown(value)}): the value cannot be copied ({described(error)}); "
            "acknowledge plain values"
        ) from None


def record_unmodified(
    workload: UnmodifiedWorkload,
    model: PersistenceModel,
    image: Image,
    root: str,
    limits: Limits,
) -> Record:
    """Run ``workload(ack)`` once, interposed, in a process of its own.

    Raises ``HarnessError`` with the line of the program if it fails, hangs, or uses something
    beside the disk.
    """
    install()
    start = rooted(image, root)

    def run() -> bytes:
        disk = Disk(start, model, time.time_ns)
        recorder = PlaceRecorder(disk)
        recorder.follow_executors()
        history = _Acknowledgements(lambda: disk.operations, recorder.here)
        try:
            with strictly(Process(disk), root, strict=limits.strict):
                end_normally(workload, history)
        except BaseException as error:
            return pickle.dumps(_failure_of_workload(error, root))
        return pickle.dumps((disk.journal.operations, history.entries, recorder.places))

    found = pickle.loads(run_apart(run, limits.timeout, "the workload"))
    if isinstance(found, str):
        raise HarnessError(found)
    return Record(start, *found)


def end_normally(workload: Callable[..., None], *arguments: object) -> None:
    """Call a workload, which may return or exit with status 0."""
    try:
        workload(*arguments)
    except SystemExit as left:
        if left.code not in (None, 0):
            raise


def _failure_of_workload(error: BaseException, root: str) -> str:
    if isinstance(error, UnsupportedOperation):
        return sentence_on(error)
    if isinstance(error, HarnessError):
        return str(error)
    reason, text = failed_before_any_crash(error), text_of(error)
    may_be_of_c = isinstance(error, OSError) or root in text or _OF_C.search(text)
    if may_be_of_c and not _is_raised_by_engine(error.__traceback__):
        reason += (
            "; if a C library opened the file itself or used its descriptor, it cannot see "
            f"{root}: run the command with powercut try"
        )
    return reason


def failed_before_any_crash(error: BaseException) -> str:
    """Return the sentence for a workload that fails by itself, with the line of the program."""
    named = " ".join(described(error).split())
    return f"the workload failed before any crash: {named}{raised_at(error.__traceback__)}"


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _is_raised_by_engine(trace: TracebackType | None) -> bool:
    frames = list(_frames(trace))
    return bool(frames) and frames[-1].tb_frame.f_code.co_filename.startswith(ENGINE)


def whole_paths(entries: list[HistoryEntry], root: str) -> list[HistoryEntry]:
    """Return entries whose values, if they are mappings, have absolute paths as keys."""
    return [
        entry._replace(value=_whole(entry.value, root))
        if isinstance(entry.value, Mapping)
        else entry
        for entry in entries
    ]


def _whole(value: Mapping[Any, object], root: str) -> dict[Any, object]:
    return {
        posixpath.normpath(posixpath.join(root, os.fsdecode(path)))
        if isinstance(path, str | bytes | os.PathLike)
        else path: content
        for path, content in value.items()
    }
