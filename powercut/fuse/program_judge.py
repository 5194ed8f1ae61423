"""The judge of a recorded program: finds images, checks as many as allowed, gives verdicts.

The first pass finds the distinct images of every model. Images that several models share are
checked once. The second pass checks the best of them, by rank: of each rank, one image of each
crash point in turn.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from oracles.history import Known
from oracles.violation import Violation
from powercut.explorer.large_writes import fitting
from powercut.explorer.page_cache import PageCache
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from powercut.fuse.command_check import memory_folder
from powercut.fuse.crash_search import (
    MOST_SECTORS,
    Found,
    Key,
    Rank,
    Search,
    image_of,
    search,
)
from powercut.fuse.failures_left import FailuresLeft
from powercut.fuse.image_check import Checked, ImageCheck
from powercut.fuse.parallel import in_processes
from powercut.fuse.recording import Recording
from sim.disk.cache.key import key_of
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel, model_named
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from sim.errors import HarnessError

_CHECKED_BYTES: Final = 6 << 30
"""The most bytes of images that are written for checks, about."""

_FEWEST_CHECKS: Final = 64
_SHARES: Final = {
    Rank.EXTREME: 5,
    Rank.PREFIX: 4,
    Rank.ONE_LOST: 4,
    Rank.ONE_ALONE: 3,
    Rank.OTHER: 1,
    Rank.TORN: 2,
    Rank.STALE: 1,
}


@dataclass(frozen=True, slots=True)
class Counts:
    """The distinct images over all models, and those that were checked."""

    images: int
    checked: int
    flaky: int


class ProgramJudge:
    """Judges one recording. ``checks`` is the most images that are checked.

    It is also the checker with which missing barriers are searched.
    """

    def __init__(
        self, recording: Recording, check: ImageCheck, checks: int, processes: int
    ) -> None:
        self._recording = recording
        self._check = check
        self._checks = checks
        self._processes = processes
        self._results: dict[Key, Checked] = {}
        self._verdicts: dict[str, Exploration] = {}
        self._left: dict[str, FailuresLeft] = {}
        self.counts = Counts(0, 0, 0)
        self.is_blind = False

    def must_pass_undamaged(self) -> None:
        """Raise ``HarnessError`` if the check fails on the disk that no crash has damaged.

        ``is_blind`` is then whether it passes as well where everything is lost.
        """
        journal = self._recording.journal
        image = Disk.from_journal(journal).unmounted()
        entries = len(self._recording.acknowledgements)
        (checked,) = self._run([(image, entries)]).values()
        if checked.is_flaky:
            raise HarnessError(
                "the check is flaky: on the undamaged disk it fails, and then passes"
            )
        if checked.violation is not None:
            raise HarnessError(
                f"on the undamaged disk {checked.violation.statement}; correct the check"
            )
        lost = self._run([(journal.image, entries)])[0]
        self.is_blind = lost.violation is None and not lost.is_flaky

    def judge(self, models: Sequence[PersistenceModel]) -> dict[str, Exploration]:
        """Return the verdicts by the name of the model, in their order."""
        journal, history = self._recording.journal, self._recording.history()
        workload = RecordedWorkload(journal, history)
        searches = self._search(workload, models)
        size = sum(map(len, Disk.from_journal(journal).files().values()))
        most = max(_FEWEST_CHECKS, min(self._checks, _CHECKED_BYTES // (size + 1)))
        self._check_best(workload, searches, min(most, self._checks))
        keys = {found.key for each in searches.values() for found in each.found}
        results = [self._results[key] for key in keys if key in self._results]
        flaky = sum(result.is_flaky for result in results)
        self.counts = Counts(len(keys), len(results), flaky)
        for model in models:
            self._verdicts[model.name] = self._verdict(workload, model, searches)
        return {model.name: self._verdicts[model.name] for model in models}

    # -- the checker of missing barriers ---------------------------------------------------

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Return the failures under ``model`` that further barriers leave."""
        if model.name not in self._left:
            self._left[model.name] = FailuresLeft(self._verdicts[model.name])
        return self._left[model.name].of(workload)

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check one disk."""
        image, entries = disk.unmounted(), len(known.acknowledged)
        key = entries, key_of(image.platter.values())
        if key not in self._results:
            self._results[key] = self._run([(image, entries)])[0]
        return self._results[key].violation

    # -- the two passes --------------------------------------------------------------------

    def _search(
        self, workload: RecordedWorkload, models: Sequence[PersistenceModel]
    ) -> dict[str, Search]:
        processes = min(self._processes, len(models))

        def work(number: int) -> Iterator[tuple[str, Search]]:
            for model in models[number::processes]:
                yield model.name, search(workload.journal, workload.history, model)

        return dict(in_processes(processes, work))

    def _check_best(
        self, workload: RecordedWorkload, searches: Mapping[str, Search], most: int
    ) -> None:
        unknown: dict[Key, Found] = {}
        for found in (found for each in searches.values() for found in each.found):
            if found.key not in self._results:
                unknown.setdefault(found.key, found)
        chosen = best(unknown.values(), most)
        images = dict(_built(workload.journal, chosen))
        for number, checked in self._run(
            [(images[found.key], found.entries) for found in chosen]
        ).items():
            self._results[chosen[number].key] = checked

    def _run(self, images: Sequence[tuple[Image, int]]) -> dict[int, Checked]:
        processes = max(1, min(self._processes, len(images)))
        folder = tempfile.mkdtemp(prefix=f"powercut-checks-{os.getpid()}-", dir=memory_folder())

        def work(number: int) -> Iterator[tuple[int, Checked]]:
            checks = self._check.begin(folder)
            for place in range(number, len(images), processes):
                yield place, checks.check(*images[place])

        try:
            return dict(in_processes(processes, work))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _verdict(
        self, workload: RecordedWorkload, model: PersistenceModel, searches: Mapping[str, Search]
    ) -> Exploration:
        found = searches[model.name].found
        checked = [each for each in found if each.key in self._results]
        whole = searches[model.name].exhaustive and len(checked) == len(found)
        verdict = Exploration(
            fitting(model, workload.journal, MOST_SECTORS), workload, self,
            built=len(found), states=len(checked), exhaustive=whole,
        )  # fmt: skip
        for each in checked:
            violation = self._results[each.key].violation
            if violation is not None:
                verdict.fail(Failure((each.crash,), each.entries, each.key[1], violation))
        verdict.failures.sort(key=lambda failure: failure.simplicity)
        return verdict


def best(images: Iterable[Found], most: int) -> list[Found]:
    """Return the images that find most bugs: a share of each rank.

    Of a rank, those after acknowledgements come first, then one of each crash point in turn, the
    points evenly spread.
    """
    ranks: dict[Rank, list[Found]] = {rank: [] for rank in Rank}
    for found in images:
        ranks[found.rank].append(found)
    chosen: list[Found] = []
    left: list[Found] = []
    for rank, those in ranks.items():
        those.sort(key=lambda found: (found.order, _spread(found.done)))
        share = most * _SHARES[rank] // sum(_SHARES.values())
        chosen += those[:share]
        left += those[share:]
    return (chosen + left)[:most]


def _spread(number: int) -> int:
    """Return the number with its bits reversed, by which any few of a series lie far apart."""
    return int(f"{number:032b}"[::-1], 2)


def _built(journal: Journal, chosen: Iterable[Found]) -> Iterator[tuple[Key, Image]]:
    """Yield the images of crash points; a journal is read once for each model."""
    by_model: dict[str, dict[int, list[Found]]] = {}
    for found in chosen:
        by_model.setdefault(found.model, {}).setdefault(found.done, []).append(found)
    for name, by_number in by_model.items():
        unsynced = Unsynced(
            fitting(model_named(name), journal, MOST_SECTORS), journal.image.platter
        )
        cache = PageCache(journal.image.cached)
        for number in range(max(by_number) + 1):
            if number:
                operation = journal[number - 1]
                unsynced.advance(operation, number)
                cache.advance(operation, unsynced)
            for found in by_number.get(number, ()):
                following = journal[min(number, len(journal) - 1)]
                image = image_of(unsynced, cache, found.crash, following, journal.next_inode)
                yield found.key, image
