"""A trigger: one rule at work, with how often it was met and how often it struck."""

from __future__ import annotations

from typing import Final, assert_never

from faults.fault_moment import Above, After, From, Nth
from faults.fault_rule import Calls, FaultRule
from sim.disk.cache.operation import (
    Create,
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

_CALLS_OF: Final[dict[type[Operation], Calls]] = {
    Create: Calls.CREATE,
    Write: Calls.WRITE,
    Resize: Calls.RESIZE,
    Link: Calls.LINK,
    Unlink: Calls.UNLINK,
    Rename: Calls.RENAME,
    SetAttributes: Calls.ATTRIBUTES,
    Sync: Calls.FSYNC,
    FailedSync: Calls.FSYNC,
}


class Trigger:
    """Counts the calls that ``rule`` matches while it is on, and says when it strikes.

    ``fired`` is how often the fault was really injected: it is counted by the injector.
    """

    __slots__ = ("fired", "on", "rule", "seen")

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.on = rule.on
        self.seen = 0
        self.fired = 0

    def strikes(self, calls: Calls, path: str, amount: int = 0) -> bool:
        """Count this call if it matches, and say whether it is hit.

        ``amount`` is what the rule's moment measures: the operation's number for
        ``from``, the open descriptors for ``above``.
        """
        if not (self.on and self.rule.matches(calls, path)):
            return False
        self.seen += 1
        match self.rule.moment:
            case Nth(first, onwards):
                return self.seen == first or (onwards and self.seen > first)
            case From(least) | Above(least):
                return amount >= least
            case After():
                # The injector counts the space.
                return True
            case never:
                assert_never(never)

    def strikes_operation(self, operation: Operation, number: int) -> bool:
        """Count mutating operation ``number`` if it matches, and say whether it is hit.

        A rename matches by either of its names. ``sync(2)`` cannot fail, so nothing
        matches it.
        """
        if isinstance(operation, Sync) and not operation.inode:
            return False
        path = operation.path
        if isinstance(operation, Rename) and not self.rule.matches(Calls.RENAME, path):
            path = operation.to_path
        return self.strikes(_CALLS_OF[type(operation)], path, number)
