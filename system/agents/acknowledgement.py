"""The operator acknowledges a message: it is delivered, and no longer pending for USER."""

from __future__ import annotations

from system.agents import event
from system.agents.creation import Event
from system.agents.orchestrator import Orchestrator
from system.errors import UnknownMessage


async def acknowledge(orchestrator: Orchestrator, message_id: str) -> None:
    """Write durably that a message to USER was read; a second call changes nothing.

    Raises ``UnknownMessage``, ``StorageError`` or ``OSError``.
    """
    user, history = orchestrator.user, orchestrator.user.history
    if message_id not in history.enqueued:
        knows_id = orchestrator.durable.knows_id
        if not (history.has_known_ids and await knows_id(user.session_id, message_id)):
            raise UnknownMessage(message_id)

    def make() -> list[Event]:
        if message_id not in history.pending:
            return []
        return [(event.MESSAGE_DELIVERED, {"message_id": message_id})]

    await user.log.commit(make)
