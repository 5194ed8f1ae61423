"""The judgement of a recorded program: whether the model allows each of its outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from powercut.calibrate.outcome_search import OutcomeSearch
from powercut.calibrate.program import Call, Caller, Outcome
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import (
    BTRFS,
    EXT4,
    EXT4_JOURNAL,
    EXT4_WRITEBACK,
    XFS,
    PersistenceModel,
)
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk

MODEL_OF: Final[Mapping[str, PersistenceModel]] = {
    "ext4": EXT4,
    "ext4nd": EXT4,
    "ext4wb": EXT4_WRITEBACK,
    "ext4wbnd": EXT4_WRITEBACK,
    "ext4j": EXT4_JOURNAL,
    "xfs": XFS,
    "btrfs": BTRFS,
}
"""The model that must allow the outcomes of each recorded file system."""


class JudgedOutcome(NamedTuple):
    """An outcome, after ``returned`` calls had returned."""

    returned: int
    outcome: Outcome


class Judgement(NamedTuple):
    """The verdict on one program under one model.

    ``differences``: the calls whose errno differs, each as call, recorded errno, simulated
    errno, which is None for success. ``allowed`` and ``forbidden`` are empty then.
    """

    differences: list[tuple[Call, str | None, str | None]]
    allowed: list[JudgedOutcome]
    forbidden: list[JudgedOutcome]


class Simulated:
    """A program on the simulated disk, with its journal.

    ``bounds`` has the number of operations that were carried out before each call, and
    after the last one.
    """

    def __init__(self, setup: Sequence[Call], calls: Sequence[Call]) -> None:
        self.image = _prepared(setup)
        disk = Disk(self.image)
        caller = Caller(Process(disk), _path)
        self.bounds = [0]
        self.results: list[str | None] = []
        for call in calls:
            self.results.append(caller.do(call))
            self.bounds.append(disk.operations)
        self.journal = disk.journal
        self.next_inode = disk.next_inode

    def allows(self, model: PersistenceModel, observed: JudgedOutcome) -> bool:
        """Return whether a power cut after that many calls, or in the next, leaves the outcome."""
        last = self.bounds[min(observed.returned + 1, len(self.bounds) - 1)]
        return any(
            search.survivors_of(observed.outcome) is not None
            for search in self._searches(model, self.bounds[observed.returned], last)
        )

    def _searches(self, model: PersistenceModel, first: int, last: int) -> Iterator[OutcomeSearch]:
        """Yield a search for each moment from operation ``first`` to ``last``, one at a time."""
        unsynced = Unsynced(model, self.image.platter)
        for number in range(last + 1):
            if number:
                unsynced.advance(self.journal[number - 1], number)
            if number >= first:
                yield OutcomeSearch(unsynced, self.next_inode)


def judge(row: Mapping[str, Any], model: PersistenceModel | None = None) -> Judgement:
    """Judge a row of a calibration file, under ``model`` or that of its file system."""
    program = Simulated(row["setup"], row["ops"])
    pairs = zip(row["ops"], row["results"], program.results, strict=True)
    differences = [(call, real, ours) for call, real, ours in pairs if real != ours]
    if differences:
        return Judgement(differences, [], [])
    verdicts: dict[bool, list[JudgedOutcome]] = {True: [], False: []}
    for entry in row["seen"]:
        observed = JudgedOutcome(entry["k"], entry["out"])
        verdicts[program.allows(model or MODEL_OF[row["fs"]], observed)].append(observed)
    return Judgement([], verdicts[True], verdicts[False])


def _prepared(setup: Sequence[Call]) -> Image:
    disk = Disk()
    caller = Caller(Process(disk), _path)
    for call in setup:
        caller.do(call)
    return disk.unmounted()


def _path(path: str) -> str:
    return f"/{path}"
