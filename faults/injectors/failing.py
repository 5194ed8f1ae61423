"""Calls that fail or transfer less than requested: errno, fsync policies, short transfers.

A refused call changes nothing. A failed fsync is no refusal: the disk carries it out under
the policy of the rule (``SyncFailure``), visible to every descriptor of the file.

A rule ``change * from 12 EROFS`` is a file system that errors made read-only, so a barrier
fails as well (``ext4_sync_file`` returns EROFS once the journal is aborted).
"""

from __future__ import annotations

import os

from faults.call_kind import CallKind
from faults.fault_plan import FailSync, FaultRule, Refuse, ShortTransfer
from faults.injectors.rule_injector import RuleInjector
from sim.disk.cache.operation import Operation, Sync, Write


class RefuseInjector(RuleInjector):
    """Fails calls of any kind with one errno."""

    __slots__ = ("_errno",)

    def __init__(self, rule: FaultRule, effect: Refuse) -> None:
        super().__init__(rule)
        self._errno = effect.errno

    def before(self, operation: Operation, number: int) -> Operation:
        self._refuse(self.strikes_operation(operation, number), operation.path)
        return operation

    def reading(self, path: str, _inode: int, _offset: int, data: bytes) -> bytes:
        self._refuse(self.strikes(CallKind.READ, path), path)
        return data

    def opening(self, path: str, descriptors: int) -> None:
        self._refuse(self.strikes(CallKind.OPEN, path, descriptors), path)

    def closing(self, path: str, _inode: int) -> None:
        """Fail a close; the descriptor is closed nevertheless, as on Linux."""
        self._refuse(self.strikes(CallKind.CLOSE, path), path)

    def _refuse(self, struck: bool, path: str) -> None:
        if struck:
            self.fired += 1
            raise OSError(self._errno, os.strerror(self._errno), path)


class FailSyncInjector(RuleInjector):
    """Fails barriers under a policy."""

    __slots__ = ("_policy",)

    def __init__(self, rule: FaultRule, effect: FailSync) -> None:
        super().__init__(rule)
        self._policy = effect.policy

    def before(self, operation: Operation, number: int) -> Operation:
        struck = self.strikes_operation(operation, number)
        if struck and isinstance(operation, Sync):
            self.fired += 1
            return operation.failed(self._policy)
        return operation


class ShortTransferInjector(RuleInjector):
    """Cuts writes or reads that are longer than the rule's size."""

    __slots__ = ("_most_bytes",)

    def __init__(self, rule: FaultRule, effect: ShortTransfer) -> None:
        super().__init__(rule)
        self._most_bytes = effect.most_bytes

    def before(self, operation: Operation, number: int) -> Operation:
        struck = self.strikes_operation(operation, number)
        if struck and isinstance(operation, Write):
            return operation._replace(data=self._cut(operation.data))
        return operation

    def reading(self, path: str, _inode: int, _offset: int, data: bytes) -> bytes:
        return self._cut(data) if self.strikes(CallKind.READ, path) else data

    def _cut(self, data: bytes) -> bytes:
        if len(data) > self._most_bytes:
            self.fired += 1
        return data[: self._most_bytes]
