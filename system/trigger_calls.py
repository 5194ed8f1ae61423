"""The operator's calls about triggers: lists, the decisions of a person, and an import."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from system.agents.durable_work import DurableWork
from system.durable.errors import RowDamaged, UnknownTrigger
from system.durable.legacy import Imported, checked_legacy, import_legacy
from system.durable.stores import Stores
from system.durable.trigger import Trigger
from system.operator_calls import OperatorCalls, uncancellable
from system.ports import Json


class TriggerCalls:
    """The triggers of one runtime; all calls raise ``StorageError`` or ``OSError`` too.

    ``durable`` returns the durable work; it raises ``Closed`` when the runtime was closed.
    """

    def __init__(self, calls: OperatorCalls, durable: Callable[[], DurableWork]) -> None:
        self.calls = calls
        self._durable = durable

    @uncancellable
    async def open_rows(self) -> list[Trigger | RowDamaged]:
        """Return the triggers that are not DONE, by the time at which they are due."""
        durable = self._durable()
        return (
            [] if durable.stores is None else await durable.run(durable.stores.triggers.open_rows)
        )

    @uncancellable
    async def retry(self, trigger_id: str) -> None:
        """Run a FAILED or DEAD trigger again, with its attempts counted from 0.

        Raises ``UnknownTrigger``, ``AlreadyDecided`` (also if a newer trigger holds its key),
        ``NoRecipient`` if its agent has ended, or ``RowDamaged``.
        """
        durable = self._durable()
        stores = _found(durable, trigger_id)
        await durable.run(lambda each: stores.triggers.retry(each, trigger_id))

    @uncancellable
    async def discard(self, trigger_id: str) -> None:
        """Settle a FAILED or DEAD trigger without running it; raises as ``retry``."""
        durable = self._durable()
        stores = _found(durable, trigger_id)
        await durable.run(lambda each: stores.triggers.discard(each, trigger_id))

    @uncancellable
    async def import_legacy(self, triggers: Sequence[Json]) -> Imported:
        """Emit the triggers of an older program; a second import of them changes nothing.

        Triggers without a session that can take them are refused one by one. Raises
        ``BadTrigger``, ``NotPlainJson`` or ``PayloadTooLarge`` if one is malformed; then none is
        emitted.
        """
        durable, checked = self._durable(), checked_legacy(triggers)
        stores = await durable.opened()
        return await durable.run(
            lambda each: import_legacy(each, stores.emitter, stores.sessions, checked)
        )


def _found(durable: DurableWork, trigger_id: str) -> Stores:
    """Return the stores; a root without a database has no trigger."""
    if durable.stores is None:
        raise UnknownTrigger(trigger_id)
    return durable.stores
