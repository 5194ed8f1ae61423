"""The trigger of a turn: claimed when the turn holds its slot, shown first, settled by its line."""

from __future__ import annotations

from typing import Final, NamedTuple

from system.agents.agent import Agent
from system.agents.durable_work import DurableWork
from system.agents.message import RUNTIME, Message, MessageKind
from system.durable.errors import RowDamaged
from system.durable.producers import REMINDER
from system.durable.schedule import schedule_id_of
from system.durable.seconds import SECOND_NS
from system.durable.trigger import Claim
from system.errors import RuntimeRefused, StorageError
from system.foreign import reason_of
from system.ports import JsonObject

LATE_NS: Final = 120 * SECOND_NS
"""The lateness of a claim, in nanoseconds, beyond which the prompt shows it."""


class TurnTrigger(NamedTuple):
    """A claimed trigger, and the message that shows it."""

    claim: Claim
    message: Message

    @property
    def trigger_id(self) -> str:
        """The id of the trigger, and of the message."""
        return self.message.message_id


async def claimed_trigger(durable: DurableWork, agent: Agent, now: str) -> TurnTrigger | None:
    """Claim the first due trigger of an agent whose turn holds its slot; None if there is none.

    Damaged triggers are skipped. If the database refuses, an agent with messages runs without a
    trigger; for an agent without messages this raises ``StorageError``.
    """
    try:
        while (trigger_id := durable.due_trigger(agent.session_id)) is not None:
            await durable.write_waiting()
            if (claim := await _claim(durable, trigger_id)) is not None:
                return TurnTrigger(claim, _message(claim, agent.agent_id, now))
    except StorageError:
        if not agent.history.pending:
            raise
    return None


async def give_up_trigger(durable: DurableWork, trigger: TurnTrigger, failure: Exception) -> None:
    """Give back the trigger of a failed turn; the attempt counts unless the disk refused it."""
    stores, claim = durable.stores, trigger.claim
    assert stores is not None
    reason = reason_of(failure)
    if isinstance(failure, OSError | StorageError | RuntimeRefused):
        await return_trigger(durable, trigger)
    else:
        await durable.settle(lambda each: stores.triggers.fail(each, claim, reason))


async def return_trigger(durable: DurableWork, trigger: TurnTrigger) -> None:
    """Give back a trigger whose turn did not begin or was refused by the disk, without counting."""
    stores = durable.stores
    assert stores is not None
    await durable.settle(lambda each: stores.triggers.give_back(each, trigger.claim))


async def _claim(durable: DurableWork, trigger_id: str) -> Claim | None:
    stores = durable.stores
    assert stores is not None
    try:
        return await durable.run(lambda each: stores.triggers.claim(each, trigger_id))
    except RowDamaged:
        stores.queue.remove(trigger_id)
        return None


def _message(claim: Claim, agent_id: str, now: str) -> Message:
    trigger = claim.trigger
    if (trigger.dedup_key or "").startswith(f"{REMINDER.prefix}:"):
        return Message(trigger.id, agent_id, agent_id, MessageKind.REMINDER, trigger.payload, now)
    payload: JsonObject = {
        "source": str(trigger.source),
        "description": trigger.description,
        "payload": trigger.payload,
        "fire_at": trigger.fire_at,
    }
    if claim.late_ns > LATE_NS:
        payload["late_s"] = claim.late_ns // SECOND_NS
        if schedule_id_of(trigger.dedup_key) is not None:
            payload["missed"] = trigger.missed
    return Message(trigger.id, RUNTIME, agent_id, MessageKind.TRIGGER, payload, now)
