"""The results of a check that is crashed as well: its violation and its operations on an image.

The check runs once on images with equal keys, under whichever model. Explorations with further
barriers build nearly the same images.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from oracles.history import Known
from oracles.violation import Violation
from powercut.explorer.journals import CrashImage, Key
from sim.disk.cache.operation import Operation, Write
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk

_MOST_BYTES: Final = 1 << 27
"""Written data of the recoveries that are kept."""


class Recovered(NamedTuple):
    """The violation of a check, None if it has passed, and the operations that it has made."""

    violation: Violation | None
    operations: Sequence[Operation]


class RecoveryResults:
    """Runs ``check`` on disks with crash images, and keeps the results."""

    def __init__(self, check: Callable[[Disk, Known], Violation | None]) -> None:
        self._check = check
        self._found: dict[Key, Recovered] = {}
        self._bytes = 0

    def of(self, crashed: CrashImage, known: Known, model: PersistenceModel) -> Recovered:
        """Return the result of the check on an image, after which ``known`` was acknowledged."""
        key = (*crashed.key, crashed.image.next_inode)
        if key not in self._found:
            disk = Disk(crashed.image, model)
            self._keep(key, Recovered(self._check(disk, known), disk.journal.operations))
        return self._found[key]

    def _keep(self, key: Key, found: Recovered) -> None:
        self._bytes += sum(len(each.data) for each in found.operations if isinstance(each, Write))
        if self._bytes > _MOST_BYTES:
            self._found.clear()
            self._bytes = 0
        self._found[key] = found
