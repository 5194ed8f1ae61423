"""Recorded workloads: a journal, the history of acknowledgements, and the lines of the program.

``record`` runs a workload once. A recorded workload may also come from elsewhere, for instance
from a program in another process: then places are missing where nothing is known of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from oracles.history import History
from powercut.explorer.exits import ExitsRefused
from powercut.explorer.limits import Limits
from powercut.explorer.unmodified import (
    UnmodifiedWorkload,
    end_normally,
    failed_before_any_crash,
    record_unmodified,
    takes_one,
    whole_paths,
)
from powercut.interpose.guard import EventGuard, watch
from powercut.interpose.installation import watch_events
from powercut.interpose.interposed import DEFAULT_ROOT
from powercut.place import Place
from powercut.place_recorder import PlaceRecorder
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError, is_of_program

ProcessWorkload: TypeAlias = Callable[[Process, History], None]
Workload: TypeAlias = ProcessWorkload | UnmodifiedWorkload
"""A workload takes ``(process, ack)``, or ``ack`` alone and is interposed."""


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """One lifetime of a program.

    ``history`` has the values that it acknowledged, ``places`` the line of the program for the
    numbers of those operations where it is known. ``root`` is the directory of the disk that an
    interposed program saw, and empty for a workload that took a process. ``mapped`` are the
    numbers of the writes of mapped pages, ascending, if the stores themselves are not known.
    """

    journal: Journal
    history: History
    places: Mapping[int, Place] = field(default_factory=dict)
    root: str = ""
    mapped: tuple[int, ...] = ()


def record(
    workload: Workload,
    model: PersistenceModel,
    image: Image,
    root: str = DEFAULT_ROOT,
    limits: Limits | None = None,
) -> RecordedWorkload:
    """Run ``workload`` once on a disk that starts from ``image``, and return its record.

    A workload that takes ``ack`` alone sees the disk below the directory ``root``, and may take
    ``limits.timeout`` seconds. Raises ``HarnessError`` for a workload that fails by itself, or
    that writes to the real disk.
    """
    if takes_one(workload):
        alone = cast("UnmodifiedWorkload", workload)
        start, operations, entries, places = record_unmodified(
            alone, model, image, root, limits or Limits()
        )
        past = History(lambda: len(operations), entries=entries)
        return RecordedWorkload(Journal(start, operations), past, places, root)
    disk = Disk(image, model)
    recorder = PlaceRecorder(disk)
    history = History(lambda: disk.operations, recorder.here)
    try:
        with _sandboxed(), ExitsRefused():
            end_normally(cast("ProcessWorkload", workload), Process(disk), history)
    except BaseException as error:
        if not is_of_program(error):
            raise
        raise HarnessError(failed_before_any_crash(error)) from error
    return RecordedWorkload(disk.journal, history, recorder.places)


def must_acknowledge(workload: RecordedWorkload) -> None:
    """Raise ``HarnessError`` for a workload of which no crash can lose anything."""
    if not workload.history.entries:
        raise HarnessError(
            "nothing was acknowledged, so nothing can be lost: call ack(value) when value must "
            "survive every later crash"
        )


def must_use_the_disk(workload: RecordedWorkload) -> None:
    """Raise ``HarnessError`` for a workload without an operation."""
    if not workload.journal:
        where = f"below {workload.root}" if workload.root else "through process"
        raise HarnessError(
            f"the workload made no operation on the disk, so a crash changes nothing: write {where}"
        )


def with_whole_paths(workload: RecordedWorkload) -> RecordedWorkload:
    """Return a workload whose acknowledged mappings have absolute paths, as the disk has them."""
    if not workload.root:
        return workload
    entries = whole_paths(workload.history.entries, workload.root)
    history = History(lambda: len(workload.journal), entries=entries)
    return replace(workload, history=history)


@contextmanager
def _sandboxed() -> Iterator[None]:
    """Refuse uses of the real machine; raise the first one if the workload swallowed it."""
    watch_events()
    escapes: list[HarnessError] = []
    watch(EventGuard(None, escapes.append))
    try:
        yield
    finally:
        watch(None)
    if escapes:
        raise escapes[0]
