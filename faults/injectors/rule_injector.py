"""The injector of one fault rule, without an effect: it counts calls and decides when to strike.

A subclass overrides the hooks that its effect needs; the others pass everything through.
"""

from __future__ import annotations

from typing import Final, assert_never

from faults.call_kind import CallKind
from faults.fault_plan import (
    AboveDescriptors,
    AfterGrowth,
    FaultRule,
    FromOperation,
    NthCall,
)
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    Unlink,
    Write,
)
from sim.disk.disk import Disk

_KIND_OF: Final[dict[type[Operation], CallKind]] = {
    Create: CallKind.CREATE,
    Write: CallKind.WRITE,
    Resize: CallKind.RESIZE,
    Allocate: CallKind.RESIZE,
    Link: CallKind.LINK,
    Unlink: CallKind.UNLINK,
    Rename: CallKind.RENAME,
    SetAttributes: CallKind.ATTRIBUTES,
    Sync: CallKind.FSYNC,
    FailedSync: CallKind.FSYNC,
}


class RuleInjector:
    """Counts the calls that ``rule`` matches while ``on``, across all lifetimes.

    ``matched`` is the number of such calls; ``fired`` how many faults were injected. The
    hooks are those of ``Interposer`` and ``DescriptorInterposer``.
    """

    __slots__ = ("fired", "matched", "on", "rule")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.on = rule.on
        self.matched = 0
        self.fired = 0

    def strikes(self, calls: CallKind, path: str, amount: int = 0) -> bool:
        """Count this call if it matches, and return whether the fault strikes it.

        ``amount`` is the quantity that the condition compares: the number of the operation
        for ``from``, of open descriptors for ``above``.
        """
        if not (self.on and self.rule.matches(calls, path)):
            return False
        self.matched += 1
        match self.rule.condition:
            case NthCall(first, onwards):
                return self.matched == first or (onwards and self.matched > first)
            case FromOperation(least) | AboveDescriptors(least):
                return amount >= least
            case AfterGrowth():
                return True  # SpaceInjector counts the space.
            case never:
                assert_never(never)

    def strikes_operation(self, operation: Operation, number: int) -> bool:
        """Count mutating operation ``number`` if it matches, and return whether it is struck.

        A rename matches by either of its names. ``sync(2)`` and ``posix_fadvise`` cannot fail, and
        match no rule.
        """
        if isinstance(operation, DropPages) or (
            isinstance(operation, Sync) and not operation.inode
        ):
            return False
        path = operation.path
        if isinstance(operation, Rename) and not self.rule.matches(CallKind.RENAME, path):
            path = operation.to_path
        return self.strikes(_KIND_OF[type(operation)], path, number)

    def boot(self, disk: Disk) -> None:
        """Begin a lifetime on ``disk``; damage done in earlier lifetimes remains."""

    def before(self, operation: Operation, _number: int) -> Operation:
        """Return the operation to carry out instead; an ``OSError`` refuses it."""
        return operation

    def after(self, operation: Operation, number: int) -> None:
        """Observe an operation that happened."""

    def reading(self, _path: str, _inode: int, _offset: int, data: bytes) -> bytes:
        """Return the bytes that the program reads instead of ``data``."""
        return data

    def opening(self, path: str, descriptors: int) -> None:
        """Refuse an open by raising ``OSError``."""

    def closing(self, path: str, inode: int) -> None:
        """Report an error at a close by raising ``OSError``."""
