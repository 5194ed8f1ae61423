"""Short writes and short reads: a call that transfers less than it was asked for."""

from __future__ import annotations

from faults.fault_effect import Short
from faults.fault_rule import Calls
from faults.injectors.passing import Injector, Passing
from faults.injectors.trigger import Trigger
from sim.disk.cache.operation import Operation, Write


class ShortInjector(Passing):
    """Cuts writes or reads; one that is no longer than the rule's size is not hurt."""

    __slots__ = ("_most_bytes", "_trigger")

    def __init__(self, trigger: Trigger, effect: Short, behind: Injector) -> None:
        super().__init__(behind)
        self._trigger = trigger
        self._most_bytes = effect.most_bytes

    def before(self, operation: Operation, number: int) -> Operation:
        """Cut a write."""
        struck = self._trigger.strikes_operation(operation, number)
        if struck and isinstance(operation, Write):
            operation = operation._replace(data=self._cut(operation.data))
        return self.behind.before(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Cut a read."""
        if self._trigger.strikes(Calls.READ, path):
            data = self._cut(data)
        return self.behind.reading(path, inode, offset, data)

    def _cut(self, data: bytes) -> bytes:
        if len(data) <= self._most_bytes:
            return data
        self._trigger.fired += 1
        return data[: self._most_bytes]
