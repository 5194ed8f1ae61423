"""The run log: every step of a run with the choices that it asked for, and its failure.

``TargetRun`` writes it, a reproducer stores it, replay and reduction read it.
"""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import index
from pathlib import Path
from traceback import extract_tb
from typing import Final, NamedTuple

from faults.crash_point import CrashPoint
from oracles.violation import Violation
from powercut.fuzz.action import Action, ActionKind, KindChoices, number_of, weighted
from powercut.place import Place, is_program
from sim.choices import Choices, Chosen, Diverged
from sim.disk.disk import Disk
from sim.errors import HarnessError, described, is_of_program

RETURN: Final = "return"

_NUMBER: Final = re.compile(r"\b[0-9a-f]{6,}\b|\d+")
_VALUE: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


@dataclass(frozen=True, slots=True)
class Crash:
    """One crash of a step.

    ``during`` is the kind of action that was running, or ``recovery``. ``operation`` is the
    kind of disk operation that met the crash point, such as ``Write``, and ``path`` its path;
    ``operation`` is ``return`` if the action had returned. ``disk`` is the disk at the crash,
    to which the survivor set of ``point`` refers; None in a log from a file, and in a long
    run for all but the latest steps. ``places`` are the lines of the program for the numbers of
    the operations of that disk, and below 1 of those before a kill; empty unless requested.
    """

    during: str
    operation: str
    path: str
    point: CrashPoint
    disk: Disk | None = field(default=None, compare=False)
    places: Mapping[int, Place] = field(default_factory=dict, compare=False)


@dataclass(slots=True)
class RecordedStep:
    """One step of a run.

    ``proposed`` are the choices from which the action was made; empty in a log from a file. Of an
    action that ``is_disturbed_as_given``, they made only the action of the target.
    ``chosen`` are the choices that performing it asked for. ``outcome`` is the result in a
    few words; empty if the step failed.
    """

    action: Action
    proposed: Sequence[Chosen] = field(default=(), compare=False)
    chosen: list[Chosen] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    outcome: str = ""
    is_disturbed_as_given: bool = field(default=False, compare=False)

    def drop_disks(self) -> None:
        """Release the disks of its crashes."""
        self.crashes[:] = [replace(crash, disk=None) for crash in self.crashes]


class FailureKind(NamedTuple):
    """A violated property with the sentence that says how; or an exception with its place."""

    broken: str
    detail: str


@dataclass(slots=True)
class RunLog:
    """A recorded run.

    ``target`` is the tag of the target, ``model`` the name of the persistence model.
    ``broken`` is the short name of the violated property, or the type of the exception, and
    ``statement`` its message; both are empty if the run passed. ``detail`` is the sentence of
    the violation without values, or the place that raised the exception; a log from a file
    has none.
    """

    target: str
    model: str
    steps: list[RecordedStep] = field(default_factory=list)
    broken: str = ""
    statement: str = ""
    detail: str = field(default="", compare=False)

    @property
    def failure_kind(self) -> FailureKind:
        """The kind of failure in which the run has ended."""
        return FailureKind(self.broken, self.detail)

    def fails_like(self, other: RunLog) -> bool:
        """Return whether both runs have failed, and in the same way."""
        return bool(self.broken) and self.failure_kind == other.failure_kind


def losses_of(steps: Sequence[RecordedStep]) -> Sequence[str]:
    """Return the operations of which the last power cut with a loss lost a piece, each once.

    Without such a power cut it is the last crash, or else the last fault. Numbers are left out.
    """
    crash, fault, lost = "", "", dict[str, None]()
    for step in steps:
        fault = step.action.fault_plan or fault
        for each in step.crashes:
            crash = f"{each.point.kind} {each.point.phase} {each.operation} {each.path}"
            lost = dict.fromkeys(_NUMBER.sub("*", text) for text in _lost_by(each)) or lost
    return [*lost] or [_NUMBER.sub("*", crash or fault)]


def _lost_by(crash: Crash) -> Iterator[str]:
    """Yield the kind and the path of each operation of which a crash lost a piece."""
    if crash.disk is None or not (crash.point.survivors.lost or crash.point.survivors.torn):
        return
    micros, (lost, torn, _) = crash.disk.unsynced().micros, crash.point.survivors
    for piece in (micros[place] for place in (*lost, *[place for place, _ in torn])):
        if piece.operation > 0:
            operation = crash.disk.journal[piece.operation - 1]
            yield f"{type(operation).__name__} {operation.path}"
        else:
            yield f"{type(piece).__name__} before a kill"


class Recorder(KindChoices):
    """Passes every question on to ``source`` and appends the answer to ``chosen``.

    A choice among kinds of action is recorded as the number that chooses the same kind by
    the kinds' own weights, whatever weights ``source`` has used.
    """

    __slots__ = ("chosen", "source")

    def __init__(self, source: Choices, chosen: list[Chosen]) -> None:
        self.source = source
        self.chosen = chosen

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the answer of ``source``."""
        low, high = index(low), index(high)
        value = self.source.integer(label, low, high)
        self.chosen.append(Chosen(label, low, high, value))
        return value

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Return the kind that ``source`` chooses."""
        kind = weighted(self.source, label, kinds)
        total = sum(kind.weight for kind in kinds)
        self.chosen.append(Chosen(label, 1, total, number_of(kind, kinds)))
        return kind


class NearestChoices(KindChoices):
    """The answers of a recorded step, for a run in which the step may ask differently.

    Each question gets the next recorded answer with its label, moved into the range; the
    lowest number if there is none. Kinds of action are chosen by their recorded names.
    """

    __slots__ = ("_names", "_position", "_recorded")

    def __init__(self, step: RecordedStep) -> None:
        self._recorded = (*step.proposed, *step.chosen)
        self._position = 0
        self._names = iter(step.action.kind_names)

    def integer(self, label: str, low: int, high: int) -> int:
        """Return the number that is nearest to the recorded one."""
        chosen = self._next(label)
        return low if chosen is None else max(low, min(chosen.value, high))

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Return the recorded kind; ``Diverged`` if it is not possible now."""
        self._next(label)
        name = next(self._names, "")
        for kind in kinds:
            if kind.name == name:
                return kind
        raise Diverged(self._position, label, name)

    def _next(self, label: str) -> Chosen | None:
        for position in range(self._position, len(self._recorded)):
            if self._recorded[position].label == label:
                self._position = position + 1
                return self._recorded[position]
        return None


class ProgramExit(Exception):
    """The system called ``sys.exit``, in a process that it shares with the harness.

    Cause: a system that gives up by ending its process. Cure: raise another exception there.
    """


class CallCancelled(Exception):
    """A call of the system ended with ``CancelledError``, and its caller did not cancel it.

    Cause: a call that waits for a task which another caller may cancel. Cure: ``asyncio.shield``.
    """


class ProgramPanic(Exception):
    """The system raised an exception that does not derive from ``Exception``.

    Cause: the panic of a library in Rust, ``pytest.fail``. Cure: as for any other exception.
    """


@contextmanager
def exits_are_failures() -> Iterator[None]:
    """Raise an ``Exception`` in place of any other exception of the system."""
    failure: Exception
    try:
        yield
    except SystemExit as left:
        failure = ProgramExit(f"the system called sys.exit({left.code!r})")
        raise failure.with_traceback(left.__traceback__) from None
    except CancelledError as cancelled:
        failure = CallCancelled("a call of the system was cancelled, and not by its caller")
        raise failure.with_traceback(cancelled.__traceback__) from None
    except BaseException as other:
        if isinstance(other, Exception) or not is_of_program(other):
            raise
        failure = ProgramPanic(f"the system raised {described(other)}")
        raise failure.with_traceback(other.__traceback__) from None


def failure_of(call: Callable[[], object]) -> Exception | None:
    """Call the system under test; return the violation or other exception that it raised.

    This is the one place that catches any exception of the system. A ``HarnessError`` and
    the end of a lifetime are no results of it and pass through.
    """
    try:
        call()
    except HarnessError:
        raise
    except Exception as failure:  # noqa: BLE001 - any exception of the system is a finding
        return failure
    return None


def name_of(failure: BaseException) -> str:
    """Return the short name of a failure: the violated property, or the exception's type."""
    return failure.property_name if isinstance(failure, Violation) else type(failure).__name__


def detail_of(failure: BaseException) -> str:
    """Return the sentence of a violation, or ``file:function`` that raised the exception.

    Numbers and quoted words are left out of a sentence: they differ from run to run. An
    exception of the disk was raised by the function of the program that called the disk.
    """
    if isinstance(failure, Violation):
        return _VALUE.sub("\N{HORIZONTAL ELLIPSIS}", failure.statement)
    frames = list(extract_tb(failure.__traceback__))
    frames = [frame for frame in frames if is_program(frame.filename)] or frames
    return f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
