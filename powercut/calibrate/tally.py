"""Recorded programs, judged and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.judgement import MODEL_OF, Judgement, judge
from powercut.calibrate.mechanism import mechanism
from powercut.calibrate.row import ObservedOutcome, Row
from sim.disk.crash.persistence import PersistenceModel

ModelOf: TypeAlias = Callable[[str], PersistenceModel]


@dataclass(slots=True)
class Counts:
    """The numbers of one file system.

    ``differing`` are programs with a call whose errno differs; their outcomes are not judged.
    ``unreadable`` are outcomes with a file that the kernel could not read, and ``refused``
    images that it did not mount: these say nothing about the model.
    """

    programs: int = 0
    images: int = 0
    outcomes: int = 0
    forbidden: int = 0
    differing: int = 0
    unreadable: int = 0
    refused: int = 0
    kernels: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A program with which the kernel did something that a model forbids.

    ``forbidden`` are the outcomes, and ``cause`` is the mechanism that they show. If the errno of
    a call differs, ``forbidden`` is empty, and ``cause`` names the call.
    """

    row: Row
    model: str
    cause: str
    forbidden: tuple[ObservedOutcome, ...]

    @property
    def group(self) -> tuple[str, str]:
        """Contradictions of one group have the same cause on the same file system."""
        return self.row["fs"], self.cause

    @property
    def calls(self) -> int:
        """The number of calls, the set-up included."""
        return len(self.row["setup"]) + len(self.row["ops"])


class Tally:
    """Judges rows by the models of their file systems, and keeps the contradictions."""

    def __init__(self, model_of: ModelOf | None = None) -> None:
        self.counts: dict[str, Counts] = {}
        self.contradictions: list[Contradiction] = []
        self._model_of = model_of or MODEL_OF.__getitem__

    def add(self, row: Row) -> Contradiction | None:
        """Judge a row, count it, and return the contradiction if there is one."""
        counts = self.counts.setdefault(row["fs"], Counts())
        found = self.contradiction(row)
        counts.programs += 1
        counts.images += row["images"]
        counts.outcomes += len(row["seen"])
        counts.refused += len(row["mount_failed"])
        counts.unreadable += sum(map(_is_unreadable, row["seen"]))
        if row["kernel"] not in counts.kernels:
            counts.kernels.append(row["kernel"])
        if found is not None:
            counts.forbidden += len(found.forbidden)
            counts.differing += not found.forbidden
            self.contradictions.append(found)
        return found

    def contradiction(self, row: Row) -> Contradiction | None:
        """Judge a row; return the contradiction, or None if the model allows all that was seen."""
        model = self._model_of(row["fs"])
        readable = [observed for observed in row["seen"] if not _is_unreadable(observed)]
        judgement = judge({**row, "seen": readable}, model)
        if judgement.differences:
            return Contradiction(row, model.name, _differences(judgement), ())
        if not judgement.forbidden:
            return None
        forbidden = [observed for observed in readable if _is_among(observed, judgement)]
        kind = FILE_SYSTEMS[row["fs"]].kind
        cause = mechanism(kind, model, lambda changed: _allows(changed, row, forbidden))
        return Contradiction(row, model.name, cause, tuple(forbidden))

    def smallest_of_groups(self) -> list[tuple[Contradiction, int]]:
        """Return the smallest contradiction of each group, and the size of the group."""
        groups: dict[tuple[str, str], list[Contradiction]] = {}
        for found in self.contradictions:
            groups.setdefault(found.group, []).append(found)
        return [(min(group, key=_size), len(group)) for group in groups.values()]


def _size(contradiction: Contradiction) -> int:
    return contradiction.calls


def _allows(model: PersistenceModel, row: Row, forbidden: Iterable[ObservedOutcome]) -> bool:
    return not judge({**row, "seen": list(forbidden)}, model).forbidden


def _is_among(observed: ObservedOutcome, judgement: Judgement) -> bool:
    return (observed["k"], observed["out"]) in [
        (e.returned, e.outcome) for e in judgement.forbidden
    ]


def _is_unreadable(observed: ObservedOutcome) -> bool:
    return any(text.startswith("ERR") for text in observed["out"].values())


def _differences(judgement: Judgement) -> str:
    call, real, simulated = judgement.differences[0]
    return f"{call[0]}: {real or 'success'} on the kernel, {simulated or 'success'} simulated"
