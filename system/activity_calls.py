"""The operator's calls about activities, for programs that perform irreversible actions themselves.

An activity has a key that its caller chooses. However often the call is repeated, also after
crashes, the action is performed once, and its outcome is kept.
"""

from __future__ import annotations

from system.agents.orchestrator import Orchestrator
from system.durable.activity import Activity, ActivityStatus, Decision, Intent
from system.durable.activity_runner import action_named
from system.durable.errors import RowDamaged, UnknownActivity
from system.errors import Closed
from system.operator_calls import OperatorCalls, uncancellable
from system.ports import JsonObject


class ActivityCalls:
    """The activities of one runtime; all calls raise ``StorageError`` or ``OSError`` too."""

    def __init__(self, calls: OperatorCalls, orchestrator: Orchestrator) -> None:
        self.calls = calls
        self._durable = orchestrator.durable
        self._activities = orchestrator.activities

    @uncancellable
    async def perform(
        self, key: str, action: str, arguments: JsonObject, task_id: str | None = None
    ) -> Activity:
        """Perform an IRREVERSIBLE action once; return its row, which is DONE, FAILED or UNCERTAIN.

        ``key`` is ``activity:`` and a name, by convention a task and a number, separated by a
        colon. A repetition of the call, also after a crash, returns the same row. Raises
        ``BadActivity``, ``KeyReused``, ``NotPlainJson``, or ``Closed`` if the runtime was closed,
        or its database failed, before there was an outcome: then the next boot continues.
        """
        durable = self._durable
        intent = Intent(key, action_named(durable.actions, action), arguments, task_id=task_id)
        stores = await durable.opened()
        await durable.run(lambda transaction: stores.activities.intend(transaction, intent))
        self._activities.begin([key])
        await self._activities.wait_for(key)
        activity = await durable.run(lambda transaction: stores.activities.read(transaction, key))
        if activity.status is ActivityStatus.INTENT:
            raise Closed(f"activity {key!r:.200} is under way; the next boot goes on with it")
        return activity

    @uncancellable
    async def resolve(
        self, key: str, decision: Decision, by: str, provider_ref: str | None = None
    ) -> Activity:
        """Record the decision of the person ``by`` about an UNCERTAIN or FAILED activity.

        Returns its row. After ``AGAIN`` it is performed again, while the caller continues.
        Raises ``AlreadyDecided``, ``UnknownActivity``, ``NotPlainJson`` or ``RowDamaged``.
        """
        stores = self._durable.stores
        if stores is None:
            raise UnknownActivity(key)
        resolve = stores.activities.resolve
        activity = await self._durable.run(
            lambda transaction: resolve(transaction, key, decision, by, provider_ref)
        )
        if decision is Decision.AGAIN:
            self._activities.begin([key])
        return activity

    async def undecided(self) -> list[Activity | RowDamaged]:
        """Return the activities that wait for a decision, oldest first; damaged rows as errors."""
        stores = self._durable.stores
        if stores is None:
            return []
        return await self._durable.run(stores.activities.undecided)
