"""The operator's calls about schedules; each change is durable when its call returns."""

from __future__ import annotations

from collections.abc import Callable

from system.agents.durable_work import DurableWork
from system.agents.message import detached
from system.durable.errors import RowDamaged, UnknownSchedule
from system.durable.schedule import Schedule, Scheduled, ScheduleSpec
from system.durable.schedule_store import check_content
from system.durable.stores import Stores
from system.operator_calls import OperatorCalls, uncancellable


class ScheduleCalls:
    """The schedules of one runtime; all calls raise ``StorageError`` or ``OSError`` too.

    ``durable`` returns the durable work; it raises ``Closed`` when the runtime was closed.
    """

    def __init__(self, calls: OperatorCalls, durable: Callable[[], DurableWork]) -> None:
        self.calls = calls
        self._durable = durable

    @uncancellable
    async def create(self, spec: ScheduleSpec, schedule_id: str | None = None) -> Scheduled:
        """Create a schedule; a repetition with the same ``schedule_id`` changes nothing.

        Raises ``BadSchedule``, ``BadTrigger``, ``NoRecipient``, ``NotPlainJson`` or
        ``PayloadTooLarge``.
        """
        durable, spec = self._durable(), _kept(spec)
        stores = await durable.opened()
        return await durable.run(
            lambda transaction: stores.schedules.create(transaction, spec, schedule_id)
        )

    @uncancellable
    async def change(self, schedule_id: str, spec: ScheduleSpec) -> None:
        """Change times or content of a schedule; raises as ``create``, and ``UnknownSchedule``."""
        durable = self._durable()
        stores, spec = _found(durable, schedule_id), _kept(spec)
        await durable.run(
            lambda transaction: stores.schedules.change(transaction, schedule_id, spec)
        )

    @uncancellable
    async def delete(self, schedule_id: str) -> None:
        """End a schedule; its triggers that were not run yet are superseded.

        Raises ``UnknownSchedule``.
        """
        durable = self._durable()
        stores = _found(durable, schedule_id)
        await durable.run(lambda transaction: stores.schedules.delete(transaction, schedule_id))

    @uncancellable
    async def pause(self, schedule_id: str) -> None:
        """Stop firing until ``resume``; raises ``UnknownSchedule``."""
        durable = self._durable()
        stores = _found(durable, schedule_id)
        await durable.run(lambda transaction: stores.schedules.pause(transaction, schedule_id))

    @uncancellable
    async def resume(self, schedule_id: str) -> None:
        """Fire again from the next occurrence on; raises ``UnknownSchedule``."""
        durable = self._durable()
        stores = _found(durable, schedule_id)
        await durable.run(lambda transaction: stores.schedules.resume(transaction, schedule_id))

    @uncancellable
    async def living(self) -> list[Schedule | RowDamaged]:
        """Return the schedules that have not ended, oldest first; damaged rows as errors."""
        durable = self._durable()
        return (
            [] if durable.stores is None else await durable.run(durable.stores.schedules.all_living)
        )


def _kept(spec: ScheduleSpec) -> ScheduleSpec:
    """Return a specification whose payload is a copy; raises as ``check_content``."""
    check_content(spec)
    return spec._replace(payload=detached(spec.payload))


def _found(durable: DurableWork, schedule_id: str) -> Stores:
    """Return the stores; a root without a database has no schedule."""
    if durable.stores is None:
        raise UnknownSchedule(schedule_id)
    return durable.stores
