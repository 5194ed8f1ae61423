"""Calls that fail: EIO, EINTR, EROFS, EMFILE and their kind, and fsync under a policy.

A refused call changes nothing. A failed fsync is no refusal: the disk carries it out by
the policy of the rule (``sim.disk.operation.SyncFailure``), for every descriptor to see.

A rule ``change * from 12 EROFS`` is a file system that errors made read-only, so a
barrier fails as well (``ext4_sync_file``: EROFS once the journal is aborted).
"""

from __future__ import annotations

import os

from faults.fault_effect import FailSync, Refuse
from faults.fault_rule import Calls
from faults.injectors.passing import Injector, Passing
from faults.injectors.trigger import Trigger
from sim.disk.cache.operation import FailedSync, Operation, Sync


class RefusingInjector(Passing):
    """Lets calls of any kind fail with one errno."""

    __slots__ = ("_errno", "_trigger")

    def __init__(self, trigger: Trigger, effect: Refuse, behind: Injector) -> None:
        super().__init__(behind)
        self._trigger = trigger
        self._errno = effect.errno

    def before(self, operation: Operation, number: int) -> Operation:
        """Refuse a mutating operation."""
        if self._trigger.strikes_operation(operation, number):
            raise self._error(operation.path)
        return self.behind.before(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Refuse a read."""
        if self._trigger.strikes(Calls.READ, path):
            raise self._error(path)
        return self.behind.reading(path, inode, offset, data)

    def opening(self, path: str, descriptors: int) -> None:
        """Refuse an open."""
        if self._trigger.strikes(Calls.OPEN, path, descriptors):
            raise self._error(path)
        self.behind.opening(path, descriptors)

    def closing(self, path: str, inode: int) -> None:
        """Report an error at a close; the descriptor is gone all the same."""
        if self._trigger.strikes(Calls.CLOSE, path):
            raise self._error(path)
        self.behind.closing(path, inode)

    def _error(self, path: str) -> OSError:
        self._trigger.fired += 1
        return OSError(self._errno, os.strerror(self._errno), path)


class SyncInjector(Passing):
    """Lets barriers fail under a policy."""

    __slots__ = ("_policy", "_trigger")

    def __init__(self, trigger: Trigger, effect: FailSync, behind: Injector) -> None:
        super().__init__(behind)
        self._trigger = trigger
        self._policy = effect.policy

    def before(self, operation: Operation, number: int) -> Operation:
        """Turn a barrier into one that fails."""
        struck = self._trigger.strikes_operation(operation, number)
        if struck and isinstance(operation, Sync):
            self._trigger.fired += 1
            path, inode, data_only = operation
            operation = FailedSync(path, inode, data_only, self._policy)
        return self.behind.before(operation, number)
