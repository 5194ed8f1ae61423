"""The lazy engine: explores a recorded workload without building its crash images.

It explores with torn pieces wherever the model allows them. If that takes too many executions
or boxes, it explores with at most one torn piece in a power cut, and at last with none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from faults.crash_point import CrashKind, CrashPoint
from oracles.violation import Violation
from powercut.explorer.crash_state import image_after
from powercut.explorer.lazy.budget import Budget, GaveUp
from powercut.explorer.lazy.crash_sites import CrashSite, crash_sites
from powercut.explorer.lazy.tree import Node
from powercut.explorer.lazy.walk import Leaf, Walk
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.count import survivor_sets
from sim.disk.crash.undecided.progress import UNLIMITED
from sim.disk.disk import Disk
from sim.errors import NeedsWholeImage

MOST_EXECUTIONS: Final = {UNLIMITED: 4_000, 1: 8_000, 0: 16_000}
"""Executions of the check for one model, by the torn pieces that are allowed."""

BOXES_PER_EXECUTION: Final = 40
"""Parts of boxes for each of these executions."""

FORK: Final = 16
"""The number of executions that take as long as one in a process of its own."""

_LEAVES_PER_TICK: Final = 64

CheckDisk: TypeAlias = Callable[[Disk, int], Violation | None]
"""Checks a disk that a crash after so many entries of the history has left."""


class LazyExplorer:
    """Explores one workload, under several models and with further barriers.

    ``check`` must depend on nothing but its arguments. What it asked for is kept, by the number
    of entries of the history, for later explorations. ``nested`` is the number of times that
    the check itself is crashed. ``tick`` is called now and then; False stops the exploration.
    """

    def __init__(
        self, check: CheckDisk, nested: int, tick: Callable[[Exploration, int], bool]
    ) -> None:
        self.check = check
        self.nested = nested
        self.tick = tick
        self.trees: dict[int, Node] = {}

    def explore(self, empty: Exploration) -> Exploration | None:
        """Return the verdict on the workload and the model of ``empty``, an empty verdict.

        None if the check asks for something that only whole images have, or if the exploration
        would take too long even without torn pieces.
        """
        for tears in MOST_EXECUTIONS if empty.model.torn_units else (UNLIMITED,):
            found = empty.empty()
            try:
                _Exploring(self, found, tears).run()
            except GaveUp:
                continue
            except NeedsWholeImage:
                return None
            return found
        return None


class _Exploring:
    """One exploration with at most ``tears`` torn pieces in a power cut; ``result`` grows."""

    def __init__(self, explorer: LazyExplorer, result: Exploration, tears: int) -> None:
        self._explorer = explorer
        self._result = result
        self._tears = tears
        executions = MOST_EXECUTIONS[tears]
        if result.workload.root:
            executions //= FORK
        self._budget = Budget(executions, executions * BOXES_PER_EXECUTION)
        self._walks: dict[int, Walk] = {}
        self._leaves: set[Node] = set()
        self._failed: dict[tuple[Node, int], Failure] = {}

    def run(self) -> None:
        """Explore every crash of the workload."""
        result = self._result
        self._visit_sites()
        for walk in self._walks.values():
            walk.repeat()
        result.states = len(self._leaves)
        result.failed = len({node for node, _ in self._failed})
        result.failures = sorted(self._failed.values(), key=lambda each: each.simplicity)
        result.most_torn = None if self._tears == UNLIMITED else self._tears
        result.exhaustive = not result.stopped and result.most_torn is None

    def _visit_sites(self) -> None:
        result, tears = self._result, self._tears
        workload = result.workload
        for site in crash_sites(workload.journal, workload.history, result.model, tears):
            if site.layer is not None:
                result.decided += survivor_sets(site.layer, tears)
            leaves = self._walk(site.entries).leaves(site.boxes, site.point)
            for number, leaf in enumerate(leaves):
                if not number % _LEAVES_PER_TICK:
                    result.states = len(self._leaves)
                    result.stopped = not self._explorer.tick(result, site.point.operation)
                if result.stopped:
                    return
                self._reach(leaf, site)

    def _walk(self, entries: int) -> Walk:
        walk = self._walks.get(entries)
        if walk is None:
            explorer = self._explorer
            root = explorer.trees.setdefault(entries, Node())
            walk = self._walks[entries] = Walk(
                root,
                lambda disk: explorer.check(disk, entries),
                self._result.model,
                explorer.nested,
                self._tears,
                self._budget,
            )
        return walk

    def _reach(self, leaf: Leaf, site: CrashSite) -> None:
        self._leaves.add(leaf.node)
        violation = leaf.outcome.violation
        if violation is None:
            return
        place = (leaf.node, site.point.operation)
        if place not in self._failed:
            # The first box is the plainest.
            crashes = _evidence(leaf.crashes, leaf.boxes[0])
            failure = Failure(crashes, site.entries, leaf.node, violation)
            self._confirm(failure)
            self._failed[place] = failure

    def _confirm(self, failure: Failure) -> None:
        """Check the crash image of a failure, which must fail in the same way."""
        result, check = self._result, self._explorer.check
        image = _image_of(result.workload, result.model, failure, check)
        again = check(Disk(image, result.model), failure.entries)
        if again is None or again.property_name != failure.violation.property_name:
            raise NeedsWholeImage("something that its crash image shows in another way")


def _image_of(
    workload: RecordedWorkload, model: PersistenceModel, failure: Failure, check: CheckDisk
) -> Image:
    return image_after(
        workload.journal, model, failure.crashes, lambda disk: check(disk, failure.entries)
    )


def _evidence(crashes: Sequence[CrashPoint], box: Box) -> tuple[CrashPoint, ...]:
    """Return the crash points with the plainest survivors that a box contains."""
    found: list[CrashPoint] = []
    levels = iter(zip(box.layers, box.progress, strict=True))
    for point in crashes:
        if point.kind is CrashKind.KILL:
            found.append(point)
            continue
        layer, progress = next(levels)
        survivors = progress.completed(layer).survivors(layer)
        found.append(replace(point, survivors=survivors))
    return tuple(found)
