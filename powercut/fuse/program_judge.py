"""The judge of a recorded program: finds images, checks as many as allowed, gives verdicts.

The first pass finds the distinct images of every model. Images that several models share are
checked once. The second pass checks the best of them, by rank: of each rank, one image of each
crash point in turn. Where the image that fails loses many pieces, the third pass checks images
of its crash point that lose less, because only those show the cause; and the same damage right
behind the write that it concerns, because no barrier prevents it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from faults.crash_point import CrashPoint
from oracles.history import Known
from oracles.violation import Violation
from powercut.explorer.check_violation import FAILS_AT_START
from powercut.explorer.large_writes import fitting
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.recovery import at_its_start
from powercut.explorer.repair import OutOfTime
from powercut.explorer.ticker import Stopped
from powercut.explorer.verdicts import Exploration, Failure, InterruptedRecovery
from powercut.fuse.behind_writes import behind_writes
from powercut.fuse.check_runs import CheckRuns
from powercut.fuse.checks_folder import checks_folder
from powercut.fuse.crash_search import MOST_SECTORS, Search, built
from powercut.fuse.failures_left import FailuresLeft
from powercut.fuse.found_image import Found, Key, best
from powercut.fuse.image_check import Checked, CommandCheck, FilesCheck, ImageCheck
from powercut.fuse.model_searches import images_of_models
from powercut.fuse.parallel import in_processes
from powercut.fuse.recording import Recording
from powercut.fuse.recovery_checker import RecoveryChecker, image_of_failure
from powercut.fuse.recovery_crashes import Recoveries, Recovery
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.key import key_of
from sim.disk.crash.image import Image
from sim.disk.crash.journal_file import decode_journal
from sim.disk.crash.persistence import PersistenceModel, model_named
from sim.disk.disk import Disk
from sim.errors import HarnessError

MOST_CHECKS: Final = 1000
"""The images that are checked, if the user gives no number."""

_CHECKED_BYTES: Final = 6 << 30
"""The approximate limit on the bytes of those that are given to commands."""

_FEWEST_CHECKS: Final = 64
_PLAINER_OF_POINT: Final = 64
_PLAINER_OF_MODEL: Final = 8
"""The third pass checks at most this part of the checks for each model."""
_CHECKS_PER_RECOVERY: Final = 10


@dataclass(frozen=True, slots=True)
class Counts:
    """The distinct images over all models, and those that were checked.

    ``recoveries`` were crashed themselves; ``unrecorded`` passed, and may have been recoveries.
    """

    images: int
    checked: int
    flaky: int
    recoveries: int = 0
    unrecorded: int = 0


class ProgramJudge:
    """Judges one recording. ``checks`` is the most images that are checked.

    If it is None, there are ``MOST_CHECKS``, or fewer if they are large and given to commands.

    With ``nested``, a check that passes and writes is a recovery. It is crashed as well, on the
    first tenth of the chosen images, and up to ``checks`` images of these crashes are checked.

    It is also the checker with which missing barriers are searched. ``show`` is called with a text
    for the user each time that a part of the work is done. When ``is_over`` returns True, or too
    many checks do not end (``CheckRuns``), those that are running are ended, and the verdicts are
    those so far.
    """

    takes_known = True

    def __init__(
        self,
        recording: Recording,
        check: ImageCheck,
        checks: int | None,
        processes: int,
        nested: CommandCheck | None = None,
        show: Callable[[str], None] = lambda _text: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._recording = recording
        self._check = check
        self._checks = checks or _affordable(recording, check)
        self._runs = CheckRuns(check, processes, show, is_over)
        self._nested = nested
        self._recoveries: dict[Key, Recovery] = {}
        self._uncrashed: set[Key] = set()
        self._results: dict[Key, Checked] = {}
        self._verdicts: dict[str, Exploration] = {}
        self._recovered: dict[str, dict[CrashPoint, int]] = {}
        self._left: dict[str, FailuresLeft] = {}
        self.counts = Counts(0, 0, 0)
        self.is_blind = False
        self._is_stopped = False

    def must_pass_undamaged(self) -> None:
        """Raise ``HarnessError`` if the check fails on a disk that no crash has damaged.

        These are the disk at the end, and the one at the start, where nothing is acknowledged.
        Afterwards ``is_blind`` is whether it also passes on a disk that has lost everything.
        """
        journal = self._recording.journal
        image = Disk.from_journal(journal).unmounted()
        entries = len(self._recording.acknowledgements)
        start = journal.image
        checks = dict(self._runs.of([(image, entries), (start, 0), (start, entries)]))
        checked, first, lost = (checks[number] for number in range(3))
        if checked.is_flaky:
            raise HarnessError(
                "the check is flaky: on the undamaged disk it fails, and then passes"
            )
        if checked.violation is not None:
            raise HarnessError(
                f"on the undamaged disk {checked.violation.statement}; correct the check. It runs "
                "in the directory of these files, so other files need absolute paths"
            )
        if first.violation is not None:
            raise HarnessError(
                f"on the disk with which the program starts {first.violation.statement}; "
                f"{FAILS_AT_START}"
            )
        self._results[0, key_of(start.platter.values())] = first
        self.is_blind = lost.violation is None and not lost.is_flaky

    def judge(self, models: Sequence[PersistenceModel]) -> dict[str, Exploration]:
        """Return the verdicts by the name of the model, in their order.

        They are ``stopped`` if the time was over before the last check.
        """
        journal, history = self._recording.journal, self._recording.history()
        workload = RecordedWorkload(journal, history, mapped=self._recording.mapped)
        searches = {model.name: Search([], 0, 0, exhaustive=False) for model in models}
        try:
            searches.update(images_of_models(workload, models, self._runs))
            self._check_best(workload, searches, self._checks)
            for each in searches.values():
                self._check_plainer(workload, each, self._checks // _PLAINER_OF_MODEL)
            for name, each in searches.items():
                self._check_behind_writes(workload, name, each)
            if self._nested is not None:
                self._crash_recoveries(workload, searches, self._nested)
        except Stopped:
            self._is_stopped = True
        keys = {found.key for each in searches.values() for found in each.found}
        for recovery in self._recoveries.values():
            keys.update(found.key for each in recovery.found.values() for found in each)
        results = [self._results[key] for key in keys if key in self._results]
        flaky = sum(result.is_flaky for result in results)
        crashed, unrecorded = len(self._recoveries), len(self._uncrashed)
        self.counts = Counts(len(keys), len(results), flaky, crashed, unrecorded)
        for model in models:
            self._verdicts[model.name] = self._verdict(workload, model, searches)
        return {model.name: self._verdicts[model.name] for model in models}

    # -- the checker of missing barriers ---------------------------------------------------

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Return the failures under ``model`` that further barriers leave."""
        self._runs.show("searching for missing barriers")
        if model.name not in self._left:
            verdict = self._verdicts[model.name]
            self._left[model.name] = FailuresLeft(verdict, self._recovered[model.name])
        return self._left[model.name].of(workload)

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check one disk; raises ``OutOfTime`` if the time is over before the check has ended."""
        image, entries = disk.unmounted(), len(known.acknowledged)
        key = entries, key_of(image.platter.values())
        if key not in self._results:
            try:
                [(_, self._results[key])] = self._runs.of([(image, entries)])
            except Stopped:
                raise OutOfTime from None
        return self._results[key].violation

    def image(self, found: Exploration, failure: Failure) -> Image:
        """Return the disk of a failure, which interrupts one recovery at most."""
        return image_of_failure(found, failure)

    def is_over(self, found: Exploration) -> bool:
        """Return whether there is no time for another check."""
        del found
        return self._runs.are_over

    def recoveries(self, found: Exploration, failure: Failure) -> Sequence[InterruptedRecovery]:
        """Return the recovery that the second crash of a failure interrupts."""
        if len(failure.crashes) == 1:
            return ()
        image = self._recovered[found.model.name][failure.crashes[0]]
        recovery = self._recoveries[failure.entries, image]
        checker = RecoveryChecker(self, recovery, self._results)
        history = at_its_start(found.workload.history, failure.entries)
        workload = RecordedWorkload(recovery.journal, history)
        model = fitting(found.model, workload.journal, MOST_SECTORS)
        return (InterruptedRecovery(workload, 0, checker, model),)

    # -- the passes ------------------------------------------------------------------------

    def _check_best(
        self, workload: RecordedWorkload, searches: Mapping[str, Search], most: int
    ) -> None:
        unknown: dict[Key, Found] = {}
        for found in (found for each in searches.values() for found in each.found):
            if found.key not in self._results:
                unknown.setdefault(found.key, found)
        self._check_all(workload, best(unknown.values(), most))

    def _check_plainer(self, workload: RecordedWorkload, search: Search, most: int) -> None:
        """Check images that lose less than every failing one of their crash point."""
        fewest: dict[int, int] = {}
        unknown: dict[int, list[Found]] = {}
        for found in search.found:
            result = self._results.get(found.key)
            if result is None:
                unknown.setdefault(found.done, []).append(found)
            elif result.violation is not None:
                fewest[found.done] = min(found.losses, fewest.get(found.done, found.losses))
        chosen: list[tuple[int, Found]] = []
        for done, losses in fewest.items():
            plainer = [found for found in unknown.get(done, ()) if 0 < found.losses < losses]
            plainer.sort(key=lambda found: found.losses)
            chosen += enumerate(plainer[:_PLAINER_OF_POINT])
        chosen.sort(key=lambda placed: placed[0])
        if chosen:
            self._check_all(workload, [found for _, found in chosen[:most]])

    def _check_behind_writes(self, workload: RecordedWorkload, model: str, search: Search) -> None:
        """Check the damage of failing images also right behind the writes that it concerns."""
        failing = (each for each in search.found if self._fails(each.key))
        more = [*self._runs.in_time(behind_writes(workload, model, failing))]
        known = {each.key for each in search.found}
        search.found.extend(each for each in more if each.key not in known)
        unknown = [each for each in more if each.key not in self._results]
        unknown.sort(key=lambda each: each.order)
        if unknown:
            self._check_all(workload, unknown[: -(-self._checks // _PLAINER_OF_MODEL)])

    def _fails(self, key: Key) -> bool:
        result = self._results.get(key)
        return result is not None and result.violation is not None

    def _check_all(self, workload: RecordedWorkload, chosen: Sequence[Found]) -> None:
        if isinstance(self._check, FilesCheck):
            self._compare(workload, chosen, self._check)
            return
        self._check_images(dict(built(workload.journal, chosen)), chosen)

    def _check_images(self, images: Mapping[Key, Image], chosen: Sequence[Found]) -> None:
        work = [(images[found.key], found.entries) for found in chosen]
        for number, checked in self._runs.of(work):
            self._results[chosen[number].key] = checked

    def _compare(
        self, workload: RecordedWorkload, chosen: Sequence[Found], check: FilesCheck
    ) -> None:
        """Compare images as they are built: thousands of a large file do not fit into memory."""
        images = self._runs.in_time(built(workload.journal, chosen))
        for done, (key, image) in enumerate(images, 1):
            self._results[key] = check.check(image, key[0])
            self._runs.show(f"checking images: {done:,} of {len(chosen):,}")

    def _crash_recoveries(
        self, workload: RecordedWorkload, searches: Mapping[str, Search], check: CommandCheck
    ) -> None:
        """Crash the checks of the best images that pass, and check the images that this leaves."""
        passed: dict[Key, Found] = {}
        allowed: dict[Key, list[PersistenceModel]] = {}
        for name, each in searches.items():
            for found in each.found:
                result = self._results.get(found.key)
                if result is not None and result == Checked(None):
                    passed.setdefault(found.key, found)
                    allowed.setdefault(found.key, []).append(model_named(name))
        chosen = best(passed.values(), max(1, self._checks // _CHECKS_PER_RECOVERY))
        self._uncrashed = passed.keys() - {found.key for found in chosen}
        images = dict(built(workload.journal, chosen))
        work = [(images[found.key], found.entries, allowed[found.key]) for found in chosen]
        for number, recovery in self._recover(work, check).items():
            self._recoveries[chosen[number].key] = recovery
        self._check_recoveries()

    def _recover(
        self, images: Sequence[tuple[Image, int, list[PersistenceModel]]], check: CommandCheck
    ) -> dict[int, Recovery]:
        processes = max(1, min(self._runs.processes, len(images)))

        def work(folder: str, number: int) -> Iterator[tuple[int, Recovery]]:
            recoveries = Recoveries(check, folder)
            for place in range(number, len(images), processes):
                recovery = recoveries.of(*images[place])
                if recovery is not None:
                    yield place, recovery

        with checks_folder() as folder:
            found = in_processes(processes, lambda number: work(folder, number), self._runs.tick)
            return dict(found)

    def _check_recoveries(self) -> None:
        """Check the best images that crashes of the recoveries leave, and no earlier crash."""
        origins: dict[Key, tuple[Recovery, Found]] = {}
        for recovery in self._recoveries.values():
            for found in (found for each in recovery.found.values() for found in each):
                if found.key not in self._results:
                    origins.setdefault(found.key, (recovery, found))
        chosen = best([found for _, found in origins.values()], self._checks)
        by_recovery: dict[bytes, list[Found]] = {}
        for found in chosen:
            by_recovery.setdefault(origins[found.key][0].encoded, []).append(found)
        images: dict[Key, Image] = {}
        for encoded, those in by_recovery.items():
            images.update(built(decode_journal(encoded), those))
        self._check_images(images, chosen)

    def _verdict(
        self, workload: RecordedWorkload, model: PersistenceModel, searches: Mapping[str, Search]
    ) -> Exploration:
        found = searches[model.name].found
        checked = [each for each in found if each.key in self._results]
        whole = searches[model.name].exhaustive and len(checked) == len(found)
        whole = whole and not self._is_stopped
        verdict = Exploration(
            fitting(model, workload.journal, MOST_SECTORS), workload, self,
            built=len(found), states=len(checked), exhaustive=whole, stopped=self._is_stopped,
            endless=self._runs.endless, gave_up=self._runs.gave_up,
        )  # fmt: skip
        for each in checked:
            violation = self._results[each.key].violation
            if violation is not None:
                verdict.fail(Failure((each.crash,), each.entries, each.key[1], violation))
        self._add_recoveries(verdict, found)
        verdict.failures.sort(key=lambda failure: failure.simplicity)
        return verdict

    def _add_recoveries(self, verdict: Exploration, found: Sequence[Found]) -> None:
        """Add the images of crashed recoveries to the verdict of a model."""
        name = verdict.model.name
        seen = {each.key for each in found}
        verdict.exhaustive = verdict.exhaustive and not self._uncrashed & seen
        recovered = self._recovered[name] = {}
        for first in (each for each in found if each.key in self._recoveries):
            recovered[first.crash] = first.key[1]
            recovery = self._recoveries[first.key]
            verdict.exhaustive = verdict.exhaustive and name not in recovery.sampled
            for each in recovery.found[name]:
                if each.key in seen:
                    continue
                seen.add(each.key)
                verdict.built += 1
                result = self._results.get(each.key)
                if result is None:
                    verdict.exhaustive = False
                    continue
                verdict.states += 1
                if result.violation is not None:
                    crashes = (first.crash, each.crash)
                    failure = Failure(crashes, each.entries, each.key[1], result.violation)
                    verdict.fail(failure)


def _affordable(recording: Recording, check: ImageCheck) -> int:
    """Return how many images are checked if the user gives no number."""
    if isinstance(check, FilesCheck):
        return MOST_CHECKS
    tree = Disk.from_journal(recording.journal).unmounted().tree()
    size_bytes = sum(len(inode.blocks) * BLOCK_BYTES for _, inode in tree)
    return min(MOST_CHECKS, max(_FEWEST_CHECKS, _CHECKED_BYTES // (size_bytes + 1)))
