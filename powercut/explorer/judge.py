"""The judge: checks every crash image of a recorded workload, each distinct one once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

from oracles.history import Known
from oracles.old_or_new import OldOrNew, paths_of
from oracles.violation import CheckFailed, UnreadableAfterCrash, Violation
from powercut.explorer.journals import CrashImage, Journals, Key
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError

Check: TypeAlias = Callable[[Process, Known], None]


class Judge:
    """Explores one workload, under several models and with further barriers.

    ``check`` is called with the disk that the next boot finds, and with the values that were
    acknowledged and in flight at the crash. Without crashes of the recovery it is called once
    for images that it cannot distinguish, also if several models allow them.
    """

    def __init__(self, check: Check, limits: Limits) -> None:
        self.limits = limits
        self._check = check
        self._results: dict[Key, Violation | None] = {}

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Check every crash of a recorded workload under ``model``."""
        return _Explorer(self, workload, model).run()

    def once(self, crashed: CrashImage, known: Known, model: PersistenceModel) -> Violation | None:
        """Return the violation of an image, which the check may have found earlier."""
        key = crashed.key
        if key not in self._results:
            self._results[key] = self.violation(Disk(crashed.image, model), known)
        return self._results[key]

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check a disk once, and return the violation.

        An assertion of the check that fails is a violation, and so is any other exception of
        it: a recovery that fails.
        """
        try:
            self._check(Process(disk), known)
        except HarnessError:
            raise
        except Violation as violation:
            return violation
        except AssertionError as error:
            return CheckFailed(f"the check failed: AssertionError: {error}".removesuffix(": "))
        except Exception as error:  # noqa: BLE001 - any exception of the program is a finding
            return UnreadableAfterCrash(f"the check raised {type(error).__name__}: {error}")
        return None


class _Explorer:
    """One exploration; ``result`` grows while it runs."""

    def __init__(self, judge: Judge, workload: RecordedWorkload, model: PersistenceModel) -> None:
        self.result = Exploration(model, workload, judge)
        self._judge = judge
        self._nested = judge.limits.nested
        self._journals = Journals(workload.history, judge.limits, self._is_new)
        self._depth_seen: dict[Key, int] = {}

    def run(self) -> Exploration:
        result = self.result
        for crashed in self._journals.crashes(result.workload.journal, result.model):
            self._visit(crashed)
        result.built = self._journals.built
        result.exhaustive = self._journals.exhaustive
        result.failures.sort(key=lambda failure: failure.simplicity)
        return result

    def _is_new(self, key: Key, depth: int) -> bool:
        """Return whether an image must be checked.

        An image that was checked after more crashes is checked again if its recovery may now
        be crashed as well.
        """
        seen = self._depth_seen.get(key)
        return seen is None or (depth < seen and depth <= self._nested)

    def _visit(self, crashed: CrashImage) -> None:
        depth = len(crashed.crashes)
        if not self._is_new(crashed.key, depth):
            return
        self.result.states += crashed.key not in self._depth_seen
        self._depth_seen[crashed.key] = depth
        result = self.result
        known = result.workload.history.known(crashed.entries)
        if self._nested:
            violation = self._check_and_crash(crashed, known)
        else:
            violation = self._judge.once(crashed, known, result.model)
        if violation is not None:
            # A failed image is never checked again.
            self._depth_seen[crashed.key] = 0
            result.fail(Failure(crashed.crashes, crashed.entries, crashed.key[1], violation))

    def _check_and_crash(self, crashed: CrashImage, known: Known) -> Violation | None:
        """Check an image; crash a check that passes and writes, which is a recovery."""
        disk = Disk(crashed.image, self.result.model)
        violation = self._judge.violation(disk, known)
        if violation is None and len(crashed.crashes) <= self._nested and disk.journal:
            for nested in self._journals.crashes(
                disk.journal, disk.model, crashed.crashes, crashed.entries
            ):
                self._visit(nested)
        return violation


def default_check(workload: RecordedWorkload) -> Check:
    """Return the check that the files hold the old values or the new ones.

    Raises ``HarnessError`` for acknowledged values that are no mappings.
    """
    try:
        paths = paths_of(entry.value for entry in workload.history.entries)
    except TypeError as mistake:
        raise HarnessError(str(mistake)) from None
    old_or_new = OldOrNew(_contents(Process(Disk(workload.journal.image)), paths))
    return lambda process, known: old_or_new(_contents(process, paths), known)


def _contents(process: Process, paths: list[str]) -> dict[str, bytes | None]:
    return {path: _content(process, path) for path in paths}


def _content(process: Process, path: str) -> bytes | None:
    try:
        descriptor = process.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    content = process.pread(descriptor, process.fstat(descriptor).st_size, 0)
    process.close(descriptor)
    return content
