"""The lazy engine: explores a recorded workload without building its crash images.

It explores with torn pieces wherever the model allows them. If that takes too many executions
or boxes, it explores with at most one torn piece in a power cut, and at last with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from faults.crash_point import CrashKind, CrashPoint
from oracles.history import Known
from oracles.violation import Violation
from powercut.explorer.crash_state import image_after
from powercut.explorer.lazy.budget import Budget, GaveUp
from powercut.explorer.lazy.crash_sites import CrashSite, crash_sites
from powercut.explorer.lazy.crashes import Crashes
from powercut.explorer.lazy.estimate import check_estimate
from powercut.explorer.lazy.phases import PhasedCheck
from powercut.explorer.lazy.tree import Ending
from powercut.explorer.lazy.units import Trees
from powercut.explorer.lazy.walk import Leaf, Walk
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.ticker import Stopped, Tick, Ticker
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.count import SurvivorSets
from sim.disk.crash.undecided.progress import UNLIMITED
from sim.disk.disk import Disk
from sim.errors import NeedsWholeImage

MOST_EXECUTIONS: Final = {UNLIMITED: 4_000, 1: 8_000, 0: 16_000}
"""Executions of the check for one model, by the torn pieces that are allowed.

A model that tears nothing has those of the last attempt.
"""

ON_REQUEST: Final = 8
"""The factor by which the last attempt has more executions if ``Engine.LAZY`` was asked for."""

BOXES_PER_EXECUTION: Final = 200
"""Parts of boxes for each of these executions."""

MOST_INDEXED: Final = 1_000_000
"""Unsynced pieces and their predecessors, added up over all power cuts: a few seconds."""

MOST_STEPS: Final = 30_000
"""Steps of counting survivor sets, after which the number that is shown is too small."""

_TOO_MANY: Final = 3
"""An attempt is skipped if the estimate exceeds the executions that it may take by this factor."""


class LazyExplorer:
    """Explores one workload, under several models and with further barriers.

    The questions of ``check`` are in ``trees``, for later explorations. ``recheck`` checks a crash
    image. ``limits.nested`` is the number of times that the check itself is crashed. The check is
    executed in ``processes`` processes. ``tick`` is called several times a second; False stops
    the exploration. An execution counts as ``cost`` of them.
    """

    def __init__(
        self,
        check: PhasedCheck,
        trees: Trees,
        recheck: Callable[[Disk, Known], Violation | None],
        limits: Limits,
        processes: int,
        tick: Tick,
        cost: int = 1,
    ) -> None:
        self.check = check
        self.recheck = recheck
        self.limits = limits
        self.processes = processes
        self.tick = tick
        self.cost = cost
        self.trees = trees

    def explore(self, empty: Exploration) -> Exploration | None:
        """Return the verdict on the workload and the model of ``empty``, an empty verdict.

        None if the check asks for something that only whole images have, if there are too many
        unsynced pieces, or if the exploration would take too long even without torn pieces.
        """
        *earlier, last = MOST_EXECUTIONS.items()
        if not empty.model.torn_units:
            earlier, last = [], (UNLIMITED, last[1])
        if self.limits.engine == Engine.LAZY:
            last = (last[0], last[1] * ON_REQUEST)
        for tears, executions in (*earlier, last):
            found = empty.empty()
            try:
                _Exploring(self, found, tears, executions // self.cost).run()
            except GaveUp:
                continue
            except NeedsWholeImage:
                return None
            return found
        return None


class _Exploring:
    """One exploration with at most ``tears`` torn pieces in a power cut; ``result`` grows."""

    def __init__(
        self, explorer: LazyExplorer, result: Exploration, tears: int, executions: int
    ) -> None:
        self._explorer = explorer
        self._result = result
        self._tears = tears
        self._executions = executions
        self._tick = Ticker(explorer.tick, result)
        budget = Budget(executions, executions * BOXES_PER_EXECUTION, self._tick)
        self._walk = Walk(
            explorer.check,
            explorer.trees,
            result.model,
            Crashes(result.model, explorer.limits.nested, tears, budget),
            budget,
            explorer.processes,
        )
        self._survivor_sets = SurvivorSets(tears, MOST_STEPS)
        self._leaves: set[Ending] = set()
        self._failed: dict[tuple[Ending, int, int], Failure] = {}

    def run(self) -> None:
        """Explore every crash of the workload; raise ``GaveUp`` if that takes too long."""
        result = self._result
        try:
            sites = list(self._sites())
            check_estimate(self._walk, sites, _TOO_MANY * self._executions)
            self._visit(sites)
            self._walk.repeat()
        except Stopped as stopped:
            result.stop(stopped.place)
        result.states = self._executed()
        result.failed = len({ending for ending, _, _ in self._failed})
        result.failures = sorted(self._failed.values(), key=lambda each: each.simplicity)
        result.within = tuple(self._walk.units.within)
        result.most_torn = None if self._tears == UNLIMITED else self._tears
        all_states = result.most_torn is None and not result.model.is_reduced
        result.exhaustive = all_states and not result.stopped

    def _executed(self) -> int:
        """Return the number of executions that decide everything so far, units included."""
        return len(self._leaves) + len(self._walk.units.reached)

    def _sites(self) -> Iterator[CrashSite]:
        """Yield the crashes; raise ``NeedsWholeImage`` if they have too many unsynced pieces."""
        workload, indexed = self._result.workload, 0
        nested = self._explorer.limits.nested > 0
        for site in crash_sites(
            workload.journal, workload.history, self._result.model, self._tears, nested=nested
        ):
            self._tick()
            if site.layer is not None:
                order = site.layer.order
                indexed += len(order) + sum(before.bit_count() for before in order)
                if indexed > MOST_INDEXED:
                    raise NeedsWholeImage("more unsynced pieces than can be kept apart")
            yield site

    def _visit(self, sites: Sequence[CrashSite]) -> None:
        result = self._result
        for leaf in self._walk.leaves(self._counted(sites)):
            self._reach(leaf)
            result.states = self._executed()
            self._tick.operation = leaf.site.point.operation
            self._tick()

    def _counted(self, sites: Sequence[CrashSite]) -> Iterator[CrashSite]:
        for site in sites:
            if site.layer is not None:
                self._result.decided += self._survivor_sets.of(site.layer)
            yield site

    def _reach(self, leaf: Leaf) -> None:
        site = leaf.site
        self._leaves.add(leaf.ending)
        violation = self._explorer.check.violation(leaf.ending, site.entries)
        if violation is None:
            return
        place = (leaf.ending, site.entries, site.point.operation)
        if place not in self._failed:
            # The first box is the plainest.
            crashes = _evidence(leaf.crashes, leaf.boxes[0])
            failure = Failure(crashes, site.entries, leaf.ending, violation)
            self._confirm(failure)
            self._failed[place] = failure

    def _confirm(self, failure: Failure) -> None:
        """Check the crash image of a failure, which must fail in the same way."""
        result = self._result
        known = result.workload.history.known(failure.entries)

        def check(disk: Disk) -> Violation | None:
            return self._explorer.recheck(disk, known)

        image = image_after(result.workload.journal, result.model, failure.crashes, check)
        again = check(Disk(image, result.model))
        if again is None or again.property_name != failure.violation.property_name:
            raise NeedsWholeImage("something that its crash image shows in another way")


def _evidence(crashes: Sequence[CrashPoint], box: Box) -> tuple[CrashPoint, ...]:
    """Return the crash points with the plainest survivors that a box contains."""
    found: list[CrashPoint] = []
    box = box.in_plainest_way()
    levels = iter(zip(box.layers, box.progress, strict=True))
    for point in crashes:
        if point.kind is CrashKind.KILL:
            found.append(point)
            continue
        layer, progress = next(levels)
        survivors = progress.completed(layer).survivors(layer)
        found.append(replace(point, survivors=survivors))
    return tuple(found)
