"""Explore: run a workload once, and check every disk that a crash of it may leave.

The workload runs on a recording disk. At each operation of the journal every crash image is
built that the persistence model allows, distinguished from earlier ones, booted and checked.
The workload is not run again, so the cost grows linearly with its operations.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from oracles.history import History, Known
from oracles.old_or_new import OldOrNew, paths_of
from oracles.violation import UnreadableAfterCrash, Violation
from powercut.explorer.journals import CrashImage, Journals, Key
from powercut.explorer.limits import Limits
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
from sim.disk.disk import Disk
from sim.errors import HarnessError

Workload = Callable[[Process, History], None]
Check = Callable[[Process, Known], None]


def explore(
    workload: Workload,
    check: Check | None = None,
    model: str | PersistenceModel = "posix",
    limits: Limits | None = None,
    image: Image | None = None,
) -> Exploration:
    """Run ``workload(process, ack)`` once, and check every crash of it under ``model``.

    The workload uses ``process`` as it would use ``os``. It calls ``ack(value)`` when
    ``value`` must survive every later crash, and may call ``ack.attempt(value)`` before it
    starts to write ``value``.

    ``check(process, known)`` is called with the disk that the next boot finds, and with the
    values that were acknowledged and in flight at the crash. It raises a ``Violation``; any
    other exception counts as a recovery that fails. Without a check, the values are mappings
    from path to content (None for no file), and after a crash the files must show the last
    acknowledged value or one in flight.

    ``image`` is the disk on which the workload starts; the default is an empty one.

    Raises ``HarnessError`` for an unknown model, for a workload that fails by itself, and for
    values that are no mappings if there is no check.

    Example::

        def save(process, ack):
            fd = process.open("/note", os.O_CREAT | os.O_WRONLY)
            process.write(fd, b"hello")
            process.fsync(fd)
            ack({"/note": b"hello"})

        assert explore(save, model="ext4-ordered").safe
    """
    found = model_named(model) if isinstance(model, str) else model
    return _Explorer(workload, check, found, limits or Limits(), image or Image.empty()).run()


def explore_models(
    workload: Workload, check: Check | None = None, limits: Limits | None = None
) -> dict[str, Exploration]:
    """Explore under every persistence model; return the verdicts by model, strongest first."""
    return {name: explore(workload, check, name, limits) for name in MODELS}


class _Explorer:
    """One exploration; ``result`` grows while it runs."""

    def __init__(
        self,
        workload: Workload,
        check: Check | None,
        model: PersistenceModel,
        limits: Limits,
        image: Image,
    ) -> None:
        self.result = Exploration(model)
        self._nested = limits.nested
        self._disk = Disk(image, model)
        self._history = History(lambda: self._disk.operations)
        self._journals = Journals(self._history, limits, self._is_new)
        self._depth_seen: dict[Key, int] = {}
        self._record(workload)
        self._check = check or self._default_check()

    def run(self) -> Exploration:
        for crashed in self._journals.crashes(self._disk):
            self._visit(crashed)
        self.result.built = self._journals.built
        self.result.exhaustive = self._journals.exhaustive
        return self.result

    def _record(self, workload: Workload) -> None:
        try:
            workload(Process(self._disk), self._history)
        except HarnessError:
            raise
        except Exception as error:
            raise HarnessError(
                f"the workload failed before any crash: {type(error).__name__}: {error}"
            ) from error
        self.result.operations = self._disk.operations

    def _default_check(self) -> Check:
        try:
            paths = paths_of(entry.value for entry in self._history.entries)
        except TypeError as mistake:
            raise HarnessError(str(mistake)) from None
        old_or_new = OldOrNew(_contents(Process(Disk(self._disk.image)), paths))
        return lambda process, known: old_or_new(_contents(process, paths), known)

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
        disk = Disk(crashed.image, self.result.model)
        try:
            self._check(Process(disk), self._history.known(crashed.entries))
        except HarnessError:
            raise
        except Violation as violation:
            self._fail(crashed, violation)
            return
        except Exception as error:  # noqa: BLE001 - any exception of the program is a finding
            reason = f"recovery raised {type(error).__name__}: {error}"
            self._fail(crashed, UnreadableAfterCrash(reason))
            return
        if depth <= self._nested and disk.journal:
            for nested in self._journals.crashes(disk, crashed.crashes, crashed.entries):
                self._visit(nested)

    def _fail(self, crashed: CrashImage, violation: Violation) -> None:
        # A failed image is never checked again.
        self._depth_seen[crashed.key] = 0
        self.result.fail(self._disk, crashed.crashes, violation)


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
