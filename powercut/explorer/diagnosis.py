"""Diagnosis: the failures of a workload grouped by cause, with the barrier that is missing.

One missing barrier is one cause, however many states and models it breaks. Its failures are
those that are left when every other missing barrier is inserted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile, islice
from typing import Final, TypeAlias

from powercut.explorer.cause import Cause, Diagnosis, NoGap, concerns, is_cause_of
from powercut.explorer.crash_state import done_at, image_at, lost_pieces, unsynced_along
from powercut.explorer.early_acknowledgement import early_moments
from powercut.explorer.event import events_of
from powercut.explorer.harm import Harm, Harms
from powercut.explorer.missing_barrier import (
    Gap,
    LostPieces,
    MissingBarrier,
    gap_of,
    insert,
    is_due_for_loss,
    without_inserted,
)
from powercut.explorer.recovery import interrupting
from powercut.explorer.repair import (
    Moment,
    OutOfTime,
    explored,
    moment_of,
    preventable,
    repair,
    with_barriers,
)
from powercut.explorer.unwritten_stores import (
    UnsyncedStores,
    as_power_cut,
    stores_lost_at,
    unwritten_stores,
)
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk

_JUDGED_FAILURES: Final = 24
_ByModel: TypeAlias = dict[str, list[Failure]]


def diagnose(explorations: Mapping[str, Exploration]) -> Diagnosis:
    """Group the failures of one workload under several models by their causes.

    ``explorations`` are in the order of ``MODELS``, strongest first.
    """
    unsafe = {name: found for name, found in explorations.items() if not found.safe}
    if not unsafe:
        return Diagnosis(explorations, (), {})
    order = list(explorations)
    try:
        search = _Search(unsafe)
        causes, repaired = list(search.causes()), search.repaired
    except OutOfTime:
        causes, repaired = list(_unsearched(unsafe)), {}
    causes.sort(key=lambda cause: _rank(cause, order))
    return Diagnosis(explorations, tuple(causes), repaired)


def _unsearched(unsafe: Mapping[str, Exploration]) -> Iterator[Cause]:
    """Yield the failures grouped by the violated property, without a search for barriers."""
    harms = Harms(next(iter(unsafe.values())))
    names = dict.fromkeys(
        each.violation.property_name for found in unsafe.values() for each in found.failures
    )
    for property_name in names:
        failures = {
            name: [each for each in found.failures if each.violation.property_name == property_name]
            for name, found in unsafe.items()
        }
        yield _cause(harms, NoGap.NOT_SEARCHED, failures)


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
        self._harms = Harms(any_of)
        self._is_cut_off = False
        self._barriers = self._all_barriers()
        self.repaired = self._with(self._barriers)

    def _all_barriers(self) -> tuple[MissingBarrier, ...]:
        """Return the barriers that prevent every failure that a barrier can prevent.

        The weakest model needs most of them, and nearly always all.
        """
        barriers: tuple[MissingBarrier, ...] = ()
        for found in reversed(tuple(self._unsafe.values())):
            changed = with_barriers(self._workload, barriers)
            again = explored(self._checker.explore(changed, found.model)) if barriers else found
            if preventable(again):
                more = repair(again, self._checker.explore)
                self._is_cut_off |= more.is_cut_off
                barriers += tuple(each for each in more.barriers if each not in barriers)
        return barriers

    def _with(self, barriers: Sequence[MissingBarrier]) -> dict[str, Exploration]:
        if not barriers:
            return dict(self._unsafe)
        workload = with_barriers(self._workload, barriers)
        return {
            name: explored(self._checker.explore(workload, found.model))
            for name, found in self._unsafe.items()
        }

    def causes(self) -> Iterator[Cause]:
        """Yield the causes in no order."""
        by_barrier = self._by_barrier()
        killed = {name: _killed(found) for name, found in self._unsafe.items()}
        any_of = next(iter(self._unsafe.values()))
        stores = unwritten_stores(any_of)
        stored, killed = _parted(killed, stores)
        stored = {name: [*map(as_power_cut, failures)] for name, failures in stored.items()}
        acknowledged_early, killed = _parted(killed, early_moments(any_of))
        left = {
            name: _in_states(self._unsafe[name].failures, preventable(found))
            for name, found in self.repaired.items()
        }
        if any(killed.values()) and self._are_of_one_file(killed, left):
            killed = {name: [*failures, *left[name]] for name, failures in killed.items()}
            left = {}
        groups: list[tuple[Gap | UnsyncedStores | NoGap, _ByModel]] = [
            (NoGap.ACKNOWLEDGED_EARLY, acknowledged_early),
            (NoGap.NOT_ATOMIC, killed),
            (NoGap.CUT_OFF if self._is_cut_off else NoGap.NOT_FOUND, left),
        ]
        if any(stored.values()):
            _, shown = self._shown(stored)
            groups.append((stores_lost_at(shown, stores, self._workload), stored))
        groups += [(self._gap(each, failures), failures) for each, failures in by_barrier.items()]
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

    def _cause(self, gap: Gap | UnsyncedStores | NoGap, failures: _ByModel) -> Cause:
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
        causes.sort(key=lambda each: not each.leads_to(cause.failure.image))
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

    def _gap(self, barrier: MissingBarrier, failures: _ByModel) -> Gap:
        """Return the place of a missing barrier that belongs to the failure that is shown."""
        name, shown = self._shown(failures)
        return gap_of(self._workload, barrier, self._unsafe[name].model, shown)

    def _shown(self, failures: _ByModel) -> tuple[str, Failure]:
        """Return the failure that is shown, with the name of its model."""
        name, those = next(each for each in failures.items() if each[1])
        return name, _shown_first(self._harms, those)[0]

    def _by_barrier(self) -> dict[MissingBarrier, _ByModel]:
        """Return for each barrier the failures that are left with all others.

        A barrier without one is dropped: the report has a finding for each that is inserted.
        """
        caused: dict[MissingBarrier, _ByModel] = {}
        for barrier in self._barriers:
            others = self._with(tuple(each for each in self._barriers if each != barrier))
            more = {name: self._more(name, found) for name, found in others.items()}
            if not any(more.values()):
                self._drop(barrier)
                continue
            caused[barrier] = {
                name: _in_states(self._unsafe[name].failures, failures)
                for name, failures in more.items()
            }
            if not any(caused[barrier].values()):
                caused[barrier] = {
                    name: list(islice(self._missed(name, others[name], failures), 1))
                    for name, failures in more.items()
                }
        for name, found in self._unsafe.items():
            if any(failures[name] for failures in caused.values()):
                continue
            # Any of several barriers suffices under this model, or there are too many failures.
            failures = preventable(found)[:_JUDGED_FAILURES]
            lost = LostPieces(self._workload, found.model, failures)
            for barrier in self._most_direct_first(found.model, failures[0]) if failures else ():
                prevented = lost.prevented(insert(self._workload, barrier))
                if prevented:
                    caused[barrier][name] = prevented
                    break
        for barrier in [each for each in caused if not any(caused[each].values())]:
            del caused[barrier]
            self._drop(barrier)
        return {self._at_its_loss(each, failures): failures for each, failures in caused.items()}

    def _at_its_loss(self, barrier: MissingBarrier, failures: _ByModel) -> MissingBarrier:
        """Return a barrier that is due for the operation that its failure loses.

        One for an earlier operation on the same directory may cover that one as well. It is
        replaced, up to the next acknowledgement, if no more fails then.
        """
        gap = self._gap(barrier, failures)
        if gap.first.is_at(barrier.after):
            return barrier
        following = dropwhile(lambda event: event != gap.first, events_of(self._workload))
        last = next((event for event in following if event.operation is None), None)
        if last is None:
            return barrier
        moved = MissingBarrier(barrier.synced, gap.first.site, last.site)
        barriers = tuple(moved if each == barrier else each for each in self._barriers)
        repaired = self._with(barriers)
        if moved in self._barriers or any(self._more(name, repaired[name]) for name in repaired):
            return barrier
        self._barriers, self.repaired = barriers, repaired
        return moved

    def _drop(self, barrier: MissingBarrier) -> None:
        """Insert a barrier no longer."""
        self._barriers = tuple(each for each in self._barriers if each != barrier)
        self.repaired = self._with(self._barriers)

    def _more(self, name: str, found: Exploration) -> list[Failure]:
        """Return the failures of ``found`` that are gone with all barriers."""
        gone = {each.state for each in preventable(self.repaired[name])}
        return [each for each in preventable(found) if each.state not in gone]

    def _missed(self, name: str, found: Exploration, more: Iterable[Failure]) -> Iterator[Failure]:
        """Yield those failures ``more`` of ``found`` that the program has without a barrier.

        The first exploration was a sample, and has missed them.
        """
        workload, history = self._workload, self._workload.history
        for failure in more:
            original = without_inserted(failure, found, workload, self._unsafe[name].model)
            if original is None:
                continue
            image = image_at(workload.journal, found.model, original.crashes[0])
            known = history.known(original.entries)
            violation = self._checker.violation(Disk(image, found.model), known)
            if violation is not None:
                yield replace(original, violation=violation)

    def _most_direct_first(self, model: PersistenceModel, failure: Failure) -> list[MissingBarrier]:
        """Return the barriers, first those for an operation that ``failure`` loses.

        The others are for earlier operations, and prevent the loss only under this model.
        """
        return sorted(
            self._barriers,
            key=lambda barrier: not is_due_for_loss(self._workload, barrier, model, failure),
        )

    def _are_of_one_file(self, killed: _ByModel, left: _ByModel) -> bool:
        """Return whether all failures that are ``left`` lose pieces of files that kills break."""
        journal = self._workload.journal
        files = {
            journal[number - 1].inode
            for failures in killed.values()
            for failure in failures
            for number in (failure.crashes[0].operation, failure.crashes[0].operation + 1)
            if number <= len(journal)
        }
        for name, failures in left.items():
            model = self._unsafe[name].model
            points = {done_at(each.crashes[0]): each.crashes[0] for each in failures}
            for number, micros in unsynced_along(journal, model, points):
                lost = {piece.number for piece in lost_pieces(micros, points[number])}
                if not lost & files:
                    return False
        return True


def _cause(
    harms: Harms,
    gap: Gap | UnsyncedStores | NoGap,
    failures: _ByModel,
) -> Cause:
    failing = {name: _shown_first(harms, each) for name, each in failures.items() if each}
    models: dict[Harm, list[str]] = {}
    of_kills: set[Harm] = set()
    for name, each in failing.items():
        found = {(harms.of(it), it.needs_power_cut) for it in each[:_JUDGED_FAILURES]}
        for harm in Harm:
            if (harm, True) in found or (harm, False) in found:
                models.setdefault(harm, []).append(name)
            if (harm, False) in found:
                of_kills.add(harm)
    ordered = {harm: models[harm] for harm in Harm if harm in models}
    worst = next((harm for harm in reversed(Harm) if harm in of_kills), None)
    return Cause(gap, failing, ordered, harm_of_kills=worst)


def _shown_first(harms: Harms, failures: Sequence[Failure]) -> list[Failure]:
    """Return the failures; the first one is shown, and is the simplest that does the worst harm.

    Only failures with as many crashes as the simplest of all are considered; if that one is a kill,
    only kills.
    """
    first = failures[0]
    alike = (
        each
        for each in failures[:_JUDGED_FAILURES]
        if len(each.crashes) == len(first.crashes) and each.needs_power_cut <= first.needs_power_cut
    )
    shown = max(alike, key=lambda each: [None, *Harm].index(harms.of(each)))
    return [shown, *[each for each in failures if each is not shown]]


def _parted(failures: _ByModel, moments: Container[Moment]) -> tuple[_ByModel, _ByModel]:
    """Return the failures at these moments, and the others."""
    there: _ByModel = {}
    others: _ByModel = {}
    for name, those in failures.items():
        there[name] = [each for each in those if moment_of(each) in moments]
        others[name] = [each for each in those if moment_of(each) not in moments]
    return there, others


def _killed(found: Exploration) -> list[Failure]:
    """Return the failures that no barrier can prevent."""
    others = {each.state for each in preventable(found)}
    return [each for each in found.failures if each.state not in others]


def _in_states(failures: Iterable[Failure], wanted: Iterable[Failure]) -> list[Failure]:
    """Return the failures with the states of the wanted ones."""
    states = {each.state for each in wanted}
    return [each for each in failures if each.state in states]
