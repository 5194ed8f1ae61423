"""The operator's calls about activities, for programs that perform irreversible actions themselves.

An activity has a key that its caller chooses. However often the call is repeated, also after
crashes, the action is performed once, and its outcome is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from system.agents.message import detached
from system.agents.orchestrator import Orchestrator
from system.durable.activity import Activity, ActivityStatus, Decision, Intent
from system.durable.activity_runner import action_named
from system.durable.activity_store import encoded_arguments
from system.durable.errors import RowDamaged, UnknownActivity
from system.errors import Closed, NotStarted
from system.operator_calls import OperatorCalls, uncancellable
from system.ports import JsonObject


class ActivityCalls:
    """The activities of one runtime; all calls raise ``StorageError`` or ``OSError`` too.

    ``orchestrator`` returns its orchestrator; it raises ``Closed`` when the runtime was closed.
    """

    def __init__(self, calls: OperatorCalls, orchestrator: Callable[[], Orchestrator]) -> None:
        self.calls = calls
        self._orchestrator = orchestrator

    @uncancellable
    async def perform(
        self, key: str, action: str, arguments: JsonObject, task_id: str | None = None
    ) -> Activity:
        """Perform an IRREVERSIBLE action once; return its row, which is DONE, FAILED or UNCERTAIN.

        ``key`` is ``activity:`` and a name, by convention a task and a number, separated by a
        colon. A repetition of the call, also after a crash, returns the same row. ``task_id`` is
        an open task of an agent; some time after its end, the row is removed. Raises
        ``NotStarted``, ``BadActivity``, ``KeyReused``, ``NotPlainJson``, or ``Closed`` if the
        runtime was closed, or no attempt can be made, before there was an outcome: then the next
        boot continues.
        """
        orchestrator = self._orchestrator()
        if orchestrator.take_turns is None:
            raise NotStarted("no activity is performed before start()")
        durable, activities = orchestrator.durable, orchestrator.activities
        intent = Intent(key, action_named(durable.actions, action), arguments, task_id=task_id)
        encoded_arguments(intent)  # raises if they cannot be recorded
        intent = replace(intent, arguments=detached(arguments))
        stores = await durable.opened()
        intend = stores.activities.intend_for_program
        await durable.run(lambda transaction: intend(transaction, intent))
        while True:
            activities.begin([key])
            may_go_on = await activities.wait_for(key)
            activity = await durable.run(lambda each: stores.activities.read(each, key))
            if activity.status is not ActivityStatus.INTENT:
                return activity
            # In an open runtime, a person has decided ``again`` before the row was read.
            if orchestrator.closing or not may_go_on:
                raise Closed(f"activity {key!r:.200} is under way; the next boot goes on with it")

    @uncancellable
    async def resolve(
        self, key: str, decision: Decision, by: str, provider_ref: str | None = None
    ) -> Activity:
        """Record the decision of the person ``by`` about an UNCERTAIN or FAILED activity.

        Returns its row. After ``AGAIN`` it is performed again, while the caller continues; if
        the runtime was not started yet, ``start`` begins it.
        Raises ``BadActivity``, ``AlreadyDecided``, ``UnknownActivity``, ``NotPlainJson``,
        ``PayloadTooLarge`` or ``RowDamaged``.
        """
        orchestrator = self._orchestrator()
        stores = orchestrator.durable.stores
        if stores is None:
            raise UnknownActivity(key)
        resolve = stores.activities.resolve
        activity = await orchestrator.durable.run(
            lambda transaction: resolve(transaction, key, decision, by, provider_ref)
        )
        if activity.status is ActivityStatus.INTENT:
            orchestrator.activities.begin([key])
        return activity

    @uncancellable
    async def undecided(self) -> list[Activity | RowDamaged]:
        """Return the activities that wait for a decision, oldest first; damaged rows as errors."""
        durable = self._orchestrator().durable
        if durable.stores is None:
            return []
        return await durable.run(durable.stores.activities.undecided)
