"""The results of a check on crash images: images that it cannot distinguish are checked once.

Equal images have equal keys. Others may differ only where the check does not read: those are
found by the observation tree of the lazy engine, for checks that take a process for each call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from oracles.violation import Violation
from powercut.explorer.forks import in_forks
from powercut.explorer.journals import CrashImage, Key
from powercut.explorer.lazy.budget import Budget, GaveUp
from powercut.explorer.lazy.crash_sites import CrashSite
from powercut.explorer.lazy.crashes import Crashes
from powercut.explorer.lazy.phases import PhasedCheck
from powercut.explorer.lazy.tree import Ending
from powercut.explorer.lazy.units import Trees
from powercut.explorer.lazy.walk import Walk
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.box import Box
from sim.disk.disk import Disk
from sim.errors import HarnessError, NeedsWholeImage

MOST_QUESTIONS: Final = 300
"""Questions for each image, on average, above which a call of the check takes less time."""

_MOST_ENDINGS: Final = 512
"""Recovered images that are kept: equal images of another history follow soon."""


class ImageResults:
    """Checks images in ``processes`` forked processes, and keeps the violations.

    ``trees`` are those of the check in the lazy engine, and grow. None if each image that differs
    from the others must be checked.
    """

    def __init__(self, check: PhasedCheck, processes: int, trees: Trees | None) -> None:
        self._check = check
        self._processes = processes
        self._trees = trees
        self._found: dict[Key, Violation | None] = {}
        self._endings: dict[Key, Ending] = {}
        self._confirmed: set[str | None] = {None}

    def __contains__(self, crashed: CrashImage) -> bool:
        """Return whether an image has been checked."""
        return crashed.key in self._found

    def __getitem__(self, crashed: CrashImage) -> Violation | None:
        """Return the violation of an image that has been checked."""
        return self._found[crashed.key]

    def add(
        self,
        images: Sequence[CrashImage],
        model: PersistenceModel,
        tick: Callable[[], None],
    ) -> None:
        """Check images; if ``tick`` raises an exception, some of them have been checked."""
        if self._trees is not None:
            try:
                self._add_by_answers(self._trees, self._new(images), model, tick)
            except (GaveUp, NeedsWholeImage, HarnessError):
                # A check that is not deterministic is one too; any other error is raised below.
                self._trees = None
        new = self._new(images)

        def check(crashed: CrashImage) -> Violation | None:
            return self._violation_of(crashed, model)

        for place, violation in in_forks(check, new, self._processes, tick):
            self._found[new[place].key] = violation

    def _new(self, images: Sequence[CrashImage]) -> list[CrashImage]:
        return [crashed for crashed in images if crashed not in self]

    def _add_by_answers(
        self,
        trees: Trees,
        images: Sequence[CrashImage],
        model: PersistenceModel,
        tick: Callable[[], None],
    ) -> None:
        """Check one image of all that answer the check equally.

        The first failure of each property is repeated on its image, which must fail as well.
        """
        budget = Budget(sys.maxsize, MOST_QUESTIONS * len(images), tick)
        crashes = Crashes(model, 0, 0, budget)
        walk = Walk(self._check, trees, model, crashes, budget, self._processes)
        sites = {id(site): (site, image) for site, image in _sites(images)}
        for leaf in walk.leaves(site for site, _ in sites.values()):
            _, crashed = sites[id(leaf.site)]
            violation = self._check.violation(leaf.ending, crashed.entries)
            name = None if violation is None else violation.property_name
            if name not in self._confirmed:
                again = self._violation_of(crashed, model)
                if again is None or again.property_name != name:
                    raise NeedsWholeImage("something that its crash image shows in another way")
                self._confirmed.add(name)
            self._found[crashed.key] = violation

    def _violation_of(self, crashed: CrashImage, model: PersistenceModel) -> Violation | None:
        """Check an image; a check in two phases recovers an image once for all entries."""
        check, entries = self._check, crashed.entries
        key = (check.tree(entries), *crashed.key[1:])
        if key not in self._endings:
            if len(self._endings) >= _MOST_ENDINGS:
                self._endings.clear()
            self._endings[key] = check.execute(Disk(crashed.image, model), entries)
        return check.violation(self._endings[key], entries)


def _sites(images: Sequence[CrashImage]) -> Iterator[tuple[CrashSite, CrashImage]]:
    """Yield each image as a crash that leaves nothing else."""
    for crashed in images:
        point = crashed.crashes[-1]
        yield CrashSite(point, [Box.of_image(crashed.image)], crashed.entries, None), crashed
