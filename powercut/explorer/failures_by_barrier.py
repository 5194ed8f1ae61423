"""Failures by barrier: those of a workload, each with the missing barrier that would prevent it.

A barrier lists a model if it has failures under it: those that are left with all other barriers.
In the end the barriers that list a model prevent all failures there that barriers can prevent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile, islice
from typing import Final, TypeAlias

from powercut.explorer.crash_state import image_at
from powercut.explorer.event import Event, events_of
from powercut.explorer.harm import Harms
from powercut.explorer.missing_barrier import (
    Gap,
    MissingBarrier,
    gap_of,
    insert_later,
    is_due_for_loss,
    without_inserted,
)
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.repair import explored, moment_of, preventable, repair, with_barriers
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.disk import Disk

_COMPARED_FAILURES: Final = 24

ByModel: TypeAlias = dict[str, list[Failure]]


class FailuresByBarrier:
    """The failures of unsafe explorations by their missing barriers.

    ``repaired`` are the explorations with all these barriers. ``is_cut_off`` is true if there are
    more than are searched for.
    """

    def __init__(self, unsafe: Mapping[str, Exploration], harms: Harms) -> None:
        self._unsafe, self._harms = unsafe, harms
        any_of = next(iter(unsafe.values()))
        self._workload, self._checker = any_of.workload, any_of.checker
        self.is_cut_off = False
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
                self.is_cut_off |= more.is_cut_off
                barriers += tuple(each for each in more.barriers if each not in barriers)
        return barriers

    def _with(self, barriers: Sequence[MissingBarrier]) -> dict[str, Exploration]:
        return {name: self._under(name, barriers) for name in self._unsafe}

    def _under(self, name: str, barriers: Sequence[MissingBarrier]) -> Exploration:
        """Return the exploration under a model with these barriers."""
        found = self._unsafe[name]
        if not barriers:
            return found
        workload = with_barriers(self._workload, barriers)
        return explored(self._checker.explore(workload, found.model))

    def failures(self) -> dict[MissingBarrier, ByModel]:
        """Return for each barrier the failures that are left with all others.

        A barrier without one is dropped: the report has a finding for each that is inserted.
        """
        caused: dict[MissingBarrier, ByModel] = {}
        for barrier in self._barriers:
            others = self._with(tuple(each for each in self._barriers if each != barrier))
            more = {name: self._more(name, found) for name, found in others.items()}
            if not any(more.values()):
                self._drop(barrier)
                continue
            self._add_same(more, others)
            caused[barrier] = {
                name: in_states(self._unsafe[name].failures, failures)
                for name, failures in more.items()
            }
            if not any(caused[barrier].values()):
                caused[barrier] = {
                    name: list(islice(self._missed(name, others[name], failures), 1))
                    for name, failures in more.items()
                }
        for name in self._unsafe:
            self._list_until_sufficient(name, caused)
        for barrier in [each for each in caused if not any(caused[each].values())]:
            del caused[barrier]
            self._drop(barrier)
        return {self._at_its_loss(each, failures): failures for each, failures in caused.items()}

    def _add_same(self, more: ByModel, others: Mapping[str, Exploration]) -> None:
        """Add the same states under models where no barrier makes their moments safe.

        They fail there with all ``others``, and no longer with all barriers.
        """
        same = [each for failures in more.values() for each in failures]
        for name, found in others.items():
            if not more[name]:
                gone = {each.state for each in self.repaired[name].failures}
                failures = in_states(found.failures, same)
                more[name] = [each for each in failures if each.state not in gone]

    def _list_until_sufficient(self, name: str, caused: Mapping[MissingBarrier, ByModel]) -> None:
        """List a model for further barriers, until those that list it suffice under it.

        They may not, where any of several others prevents the failures that one would prevent.
        """
        listing = [barrier for barrier, failures in caused.items() if failures[name]]
        if len(listing) == len(caused):
            return
        found = self._under(name, listing)
        left = self._more(name, found)
        barriers = [*caused]
        for barrier in reversed(self._most_direct_first(found, left[0])) if left else ():
            if barrier in listing:
                continue
            others = [each for each in barriers if each != barrier]
            found = self._under(name, others)
            more = self._more(name, found)
            if more:
                missed = self._missed(name, found, more[:_COMPARED_FAILURES])
                known = in_states(self._unsafe[name].failures, more)
                caused[barrier][name] = known or list(islice(missed, 1))
            else:
                barriers = others

    def _at_its_loss(self, barrier: MissingBarrier, failures: ByModel) -> MissingBarrier:
        """Return a barrier that is due for the operation that its failure loses.

        One for an earlier operation on the same directory may cover that one as well. It is
        replaced, up to the next acknowledgement, if no more fails then.
        """
        gap = self.gap(barrier, failures)
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

    def _most_direct_first(self, found: Exploration, failure: Failure) -> list[MissingBarrier]:
        """Return the barriers, first those for an operation that ``failure`` loses.

        The others are for earlier operations, and prevent the loss only under this model.
        """
        return sorted(
            self._barriers,
            key=lambda barrier: not is_due_for_loss(found.workload, barrier, found.model, failure),
        )

    def gap(self, barrier: MissingBarrier, failures: ByModel) -> Gap:
        """Return the place of a missing barrier that belongs to the failure that is shown."""
        name, shown = self.shown(failures)
        return gap_of(self._workload, barrier, self._unsafe[name].model, shown)

    def widest_gap(self, barrier: MissingBarrier, failures: ByModel) -> Gap:
        """Return the same gap with the latest end that suffices, if source lines are unknown.

        A barrier ends all its gaps with events of one site. In this one a later event may do,
        before which nothing fails; other gaps may have no such event.
        """
        gap = self.gap(barrier, failures)
        last = _latest_end(self._workload, gap, failures)
        is_exhaustive = all(found.exhaustive for found in self._unsafe.values())
        if last == gap.last or gap.first.place is not None or not is_exhaustive:
            return gap
        others = [each for each in self._barriers if each != barrier]
        changed = with_barriers(insert_later(self._workload, barrier, gap, last), others)
        for name, found in self._unsafe.items():
            again = self._checker.explore(changed, found.model)
            if again.stopped or self._more(name, again):
                return gap
        return gap._replace(last=last)

    def shown(self, failures: ByModel) -> tuple[str, Failure]:
        """Return the failure that is shown, with the name of its model."""
        name, those = next(each for each in failures.items() if each[1])
        return name, self._harms.shown_first(name, those)[0]


def _latest_end(workload: RecordedWorkload, gap: Gap, failures: ByModel) -> Event:
    """Return the last event before which a barrier precedes all crashes that it is to prevent.

    They are those behind the end of the gap. A barrier behind an acknowledgement is too late.
    """
    moments = {moment_of(each) for those in failures.values() for each in those}
    last = gap.last
    behind = [moment for moment in moments if last.is_before(*moment)]
    for event in dropwhile(lambda event: event != gap.last, events_of(workload)):
        is_early = behind and all(event.is_before(*moment) for moment in behind)
        if last.operation is None or not is_early:
            break
        last = event
    return last


def in_states(failures: Iterable[Failure], wanted: Iterable[Failure]) -> list[Failure]:
    """Return the failures with the states of the wanted ones."""
    states = {each.state for each in wanted}
    return [each for each in failures if each.state in states]
