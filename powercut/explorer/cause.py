"""Causes of failures: the barrier that is missing, in the program or in its recovery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from powercut.explorer.event import events_of
from powercut.explorer.harm import Harm
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.unwritten_stores import UnsyncedStores
from powercut.explorer.verdicts import Exploration, Failure, InterruptedRecovery


class NoGap(Enum):
    """Why a cause has no missing barrier."""

    NOT_ATOMIC = auto()
    """A kill does the harm, or the loss of the last operation: no barrier fits before the crash."""
    ACKNOWLEDGED_EARLY = auto()
    """A kill does the harm: a value was acknowledged before it was written."""
    NOT_FOUND = auto()
    """No barrier leaves fewer failures, nor do two, of those that were tried."""
    CUT_OFF = auto()
    """So many barriers are missing that further ones were not searched for."""
    NOT_SEARCHED = auto()
    """The time was over."""
    SEARCH_FAILED = auto()
    """The search ended with an error."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Failures with one cause.

    ``gap`` is where a barrier is missing, or stores to mapped memory that none follows, or the
    reason why none is named. ``failures`` are by model, the strongest first; under each model the
    simplest that does the worst harm comes first, then the others, the simplest first. ``harms``
    are the models under which each harm is done, and with each the weaker ones that fail, without
    those that were not judged before the time was over. If ``failure`` is a kill, ``harm_of_kills``
    is the worst harm that kills do under its model.

    If ``failure`` interrupts a recovery, ``recovery`` is the diagnosis of that recovery: the cause
    of ``failure``, or all barriers that are missing there. Then ``gap`` is a ``NoGap``.
    """

    gap: Gap | UnsyncedStores | NoGap
    failures: Mapping[str, Sequence[Failure]]
    harms: Mapping[Harm, Sequence[str]]
    recovery: Diagnosis | None = None
    harm_of_kills: Harm | None = None

    @property
    def model(self) -> str:
        """The strongest model under which it fails."""
        return next(iter(self.failures))

    @property
    def failure(self) -> Failure:
        """The failure that is shown: the first one under the strongest model."""
        return self.failures[self.model][0]

    @property
    def states(self) -> int:
        """The number of failing states, added up over the models."""
        return sum(map(len, self.failures.values()))

    def leads_to(self, image: object, model: str) -> bool:
        """Return whether one of its failures under a model has this ``image``."""
        return any(each.image == image for each in self.failures.get(model, ()))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The causes of all failures of one workload, those under the strongest model first.

    ``explorations`` are by model, ``repaired`` the explorations of the unsafe models with
    every missing barrier inserted.
    """

    explorations: Mapping[str, Exploration]
    causes: Sequence[Cause]
    repaired: Mapping[str, Exploration]

    @property
    def safe_models(self) -> tuple[str, ...]:
        """The names of the models without a failure that were explored to the end."""
        return tuple(
            name for name, found in self.explorations.items() if found.safe and not found.stopped
        )

    @property
    def unfinished_models(self) -> tuple[str, ...]:
        """The names of the models without a failure whose exploration was stopped."""
        return tuple(
            name for name, found in self.explorations.items() if found.safe and found.stopped
        )

    @property
    def unsafe_models(self) -> tuple[str, ...]:
        """The names of the models with a failure."""
        return tuple(name for name, found in self.explorations.items() if not found.safe)


def concerns(cause: Cause, recovery: InterruptedRecovery) -> bool:
    """Return whether a barrier is missing in a recovery, or a failure interrupts it.

    The journal of the recovery may begin with the program, whose crashes do not count. A barrier
    that both miss, because they run the same lines, is missing in the recovery.
    """
    if isinstance(cause.gap, Gap):
        end = cause.gap.last.site
        return any(
            event.operation is not None and event.number > recovery.before and event.site == end
            for event in events_of(recovery.workload)
        )
    return any(
        each.crashes[0].operation > recovery.before
        for failures in cause.failures.values()
        for each in failures
    )


def is_cause_of(cause: Cause, other: Cause) -> bool:
    """Return whether the barriers that the recovery of ``cause`` misses suffice for ``other``.

    Either they begin with the same one, or they include all. A barrier for the same operation may
    be due earlier then.
    """
    if cause.recovery is None or other.recovery is None:
        return False
    workload = next(iter(other.recovery.explorations.values())).workload
    gaps = [each.gap for each in cause.recovery.causes]
    others = [each.gap for each in other.recovery.causes]
    if _is_one(gaps[0], others[0]):
        return True
    return all(isinstance(each, Gap) and _contains_one_of(each, gaps, workload) for each in others)


def _is_one(gap: Gap | UnsyncedStores | NoGap, other: Gap | UnsyncedStores | NoGap) -> bool:
    """Return whether one barrier ends both gaps.

    They have the same events, or are of the same file and end with the same event: a barrier
    before that one makes all earlier operations on the file durable, whichever they are.
    """
    if not isinstance(gap, Gap) or not isinstance(other, Gap):
        return gap == other
    is_of_same_file = gap.path == other.path or gap.first.site == other.first.site
    return is_of_same_file and gap.last.site == other.last.site


def _contains_one_of(
    gap: Gap, gaps: Sequence[Gap | UnsyncedStores | NoGap], workload: RecordedWorkload
) -> bool:
    """Return whether one of ``gaps`` begins with ``gap`` in ``workload``, and ends no later."""
    ends = {
        each.last.site
        for each in gaps
        if isinstance(each, Gap) and each.first.site == gap.first.site
    }
    return any(
        gap.first.number < event.number <= gap.last.number and event.site in ends
        for event in events_of(workload)
    )
