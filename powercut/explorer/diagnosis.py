"""Diagnosis: the failures of a workload grouped by cause, with the barrier that is missing.

One missing barrier is one cause, however many states and models it breaks. Its failures are
those that are left when every other missing barrier is inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from powercut.explorer.cause import Cause, Diagnosis, NoGap, concerns, is_cause_of
from powercut.explorer.early_acknowledgement import early_moments
from powercut.explorer.failures_by_barrier import ByModel, FailuresByBarrier, in_states
from powercut.explorer.harm import Harm, Harms
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recovery import interrupting
from powercut.explorer.repair import Moment, OutOfTime, lost_alone, moment_of, preventable
from powercut.explorer.unwritten_stores import (
    UnsyncedStores,
    as_power_cut,
    explains,
    stores_lost_at,
    unwritten_stores,
)
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.crash.persistence import is_stronger


class Diagnosed(NamedTuple):
    """A diagnosis, and the exception that has ended its search for barriers, if one has."""

    diagnosis: Diagnosis
    error: Exception | None


def diagnosed(explorations: Mapping[str, Exploration]) -> Diagnosed:
    """Return the diagnosis of failures; if it raises an exception, one without barriers.

    The failures are known before the search for their causes, which may not hide them.
    """
    try:
        return Diagnosed(diagnose(explorations), None)
    except Exception as error:  # noqa: BLE001 - the caller reports it behind the failures
        unsafe = {name: found for name, found in explorations.items() if not found.safe}
        causes = _by_property(unsafe, _unexplained)
        return Diagnosed(_ranked(explorations, causes, {}), error)


def diagnose(explorations: Mapping[str, Exploration]) -> Diagnosis:
    """Group the failures of one workload under several models by their causes.

    ``explorations`` are in the order of ``MODELS``, strongest first.
    """
    unsafe = {name: found for name, found in explorations.items() if not found.safe}
    if not unsafe:
        return Diagnosis(explorations, (), {})
    try:
        search = _Search(unsafe)
        causes, repaired = list(search.causes()), search.repaired
    except OutOfTime:
        harms = Harms(unsafe)
        causes = _by_property(unsafe, lambda each: _cause(harms, NoGap.NOT_SEARCHED, each))
        repaired = {}
    return _ranked(explorations, causes, repaired)


def _by_property(
    unsafe: Mapping[str, Exploration], cause_of: Callable[[ByModel], Cause]
) -> list[Cause]:
    """Return the failures grouped by the violated property, without a search for barriers."""
    names = dict.fromkeys(
        each.violation.property_name for found in unsafe.values() for each in found.failures
    )
    return [
        cause_of(
            {
                model: [each for each in found.failures if each.violation.property_name == name]
                for model, found in unsafe.items()
            }
        )
        for name in names
    ]


def _unexplained(failures: ByModel) -> Cause:
    """Return a cause of which nothing is known but its failures."""
    return Cause(NoGap.SEARCH_FAILED, {name: each for name, each in failures.items() if each}, {})


def _ranked(
    explorations: Mapping[str, Exploration],
    causes: Sequence[Cause],
    repaired: Mapping[str, Exploration],
) -> Diagnosis:
    order = list(explorations)
    ranked = sorted(causes, key=lambda cause: _rank(cause, order))
    return Diagnosis(explorations, tuple(ranked), repaired)


def _rank(cause: Cause, models: Sequence[str]) -> tuple[int, int, int, int]:
    return (
        cause.failure.needs_power_cut,
        cause.gap is not NoGap.ACKNOWLEDGED_EARLY,
        models.index(cause.model),
        cause.failure.crashes[0].operation,
    )


class _Search:
    """The search for the causes of unsafe explorations."""

    def __init__(self, unsafe: Mapping[str, Exploration]) -> None:
        self._unsafe = unsafe
        any_of = next(iter(unsafe.values()))
        self._workload, self._checker = any_of.workload, any_of.checker
        self._harms = Harms(unsafe)
        self._missing = FailuresByBarrier(unsafe, self._harms)

    @property
    def repaired(self) -> dict[str, Exploration]:
        """The explorations with all missing barriers."""
        return self._missing.repaired

    def causes(self) -> Iterator[Cause]:
        """Yield the causes in no order."""
        by_barrier = self._missing.failures()
        killed = {name: _killed(found) for name, found in self._unsafe.items()}
        any_of = next(iter(self._unsafe.values()))
        stores = unwritten_stores(any_of)
        stored, killed = _parted(killed, stores)
        stored = {name: [*map(as_power_cut, failures)] for name, failures in stored.items()}
        acknowledged_early, killed = _parted(killed, early_moments(any_of))
        left = {
            name: in_states(self._unsafe[name].failures, preventable(found))
            for name, found in self.repaired.items()
        }
        groups: list[tuple[Gap | UnsyncedStores | NoGap, ByModel]] = [
            (NoGap.ACKNOWLEDGED_EARLY, acknowledged_early),
            (NoGap.NOT_ATOMIC, killed),
            (NoGap.CUT_OFF if self._missing.is_cut_off else NoGap.NOT_FOUND, left),
        ]
        gaps = [
            (self._missing.widest_gap(each, failures), failures)
            for each, failures in by_barrier.items()
        ]
        if any(stored.values()):
            _, shown = self._missing.shown(stored)
            lost = stores_lost_at(shown, stores, self._workload)
            for each in [each for each in gaps if explains(lost, *each, self._unsafe)]:
                gaps.remove(each)
                stored = {name: [*those, *each[1][name]] for name, those in stored.items()}
            groups.append((lost, stored))
        groups += gaps
        in_recovery: list[Cause] = []
        for reason, failures in groups:
            if not any(failures.values()):
                continue
            cause = self._cause(reason, failures)
            if cause.recovery is None:
                yield cause
                continue
            for place, other in enumerate(in_recovery):
                together = self._together(other, cause) or self._together(cause, other)
                if together is not None:
                    in_recovery[place] = together
                    break
            else:
                in_recovery.append(cause)
        yield from in_recovery

    def _together(self, cause: Cause, other: Cause) -> Cause | None:
        """Return one cause for both, with the barriers of ``cause``, if they are one.

        They are if the first barrier that the recovery of ``other`` misses is that of ``cause``,
        or all that it misses are among those of ``cause``.
        """
        if not is_cause_of(cause, other):
            return None
        failures = {
            name: [*cause.failures.get(name, ()), *other.failures.get(name, ())]
            for name in self._unsafe
        }
        together = self._cause(NoGap.NOT_FOUND, failures)
        return together if is_cause_of(together, cause) else None

    def _cause(self, gap: Gap | UnsyncedStores | NoGap, failures: ByModel) -> Cause:
        """Return a cause, with the diagnosis of the recovery that its failure interrupts.

        If that recovery misses a barrier, those of the workload are beside the point.
        """
        cause = _cause(self._harms, gap, failures)
        recoveries = self._checker.recoveries(self._unsafe[cause.model], cause.failure)
        if not recoveries or len(recoveries) < len(cause.failure.crashes) - 1:
            return cause
        recovery = recoveries[-1]
        models = [self._unsafe[name].model for name in cause.failures]
        diagnosis = diagnose(
            {each.name: recovery.checker.explore(recovery.workload, each) for each in models}
        )
        causes = [each for each in diagnosis.causes if concerns(each, recovery)]
        causes.sort(key=lambda each: not each.leads_to(cause.failure.image, cause.model))
        if causes and isinstance(causes[0].gap, Gap):
            gap, causes = NoGap.NOT_FOUND, [each for each in causes if isinstance(each.gap, Gap)]
        elif not causes or isinstance(gap, Gap):
            return cause
        else:
            del causes[1:]
        repaired = {
            name: interrupting(recovery, found) for name, found in diagnosis.repaired.items()
        }
        recovered = replace(diagnosis, causes=tuple(causes), repaired=repaired)
        return replace(cause, gap=gap, recovery=recovered)


def _cause(
    harms: Harms,
    gap: Gap | UnsyncedStores | NoGap,
    failures: ByModel,
) -> Cause:
    failing = {name: harms.shown_first(name, each) for name, each in failures.items() if each}
    models: dict[Harm, list[str]] = {}
    for name, each in failing.items():
        found = {harms.of(name, it) for it in harms.judged(each)}
        for harm in Harm:
            # A weaker model allows what does the harm under a stronger one.
            stronger = [it for it in models.get(harm, ()) if is_stronger(it, name)]
            if stronger or harm in found:
                models.setdefault(harm, []).append(name)
    shown, each = next(iter(failing.items()))
    of_kills = {harms.of(shown, it) for it in harms.judged(each) if not it.needs_power_cut}
    ordered = {harm: models[harm] for harm in Harm if harm in models}
    worst = next((harm for harm in reversed(Harm) if harm in of_kills), None)
    return Cause(gap, failing, ordered, harm_of_kills=worst)


def _parted(failures: ByModel, moments: Container[Moment]) -> tuple[ByModel, ByModel]:
    """Return the failures at these moments, and the others."""
    there: ByModel = {}
    others: ByModel = {}
    for name, those in failures.items():
        there[name] = [each for each in those if moment_of(each) in moments]
        others[name] = [each for each in those if moment_of(each) not in moments]
    return there, others


def _killed(found: Exploration) -> list[Failure]:
    """Return the failures that no barrier can prevent.

    Where the loss of the last operation alone does harm, no barrier makes the moment safe. Power
    cuts that lose something else there are left out, because a barrier prevents each of them.
    """
    others = {each.state for each in preventable(found)}
    left = [each for each in found.failures if each.state not in others]
    cuts = [each for each in left if each.needs_power_cut and len(each.crashes) == 1]
    alone = lost_alone(found, cuts)
    states, moments = {each.state for each in alone}, set(map(moment_of, alone))
    beside = {each.state for each in cuts if moment_of(each) in moments} - states
    return [each for each in left if each.state not in beside]
