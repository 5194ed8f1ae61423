"""Mutants of the dispatch: messages that are lost, incomplete or only in memory."""

from __future__ import annotations

from oracles.runtime.violations import EffectsMismatch, LostMessage, LostSpawn
from oracles.violation import LostAck, Reordered, Starved, TornRecord
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

message_to_new_child_is_lost = Mutant(
    "a message to a child of the same turn is not logged",
    "runtime",
    (LostMessage, EffectsMismatch),
    (
        SourcePatch(
            "system.agents.dispatcher",
            """
            for message in outbox.messages:
                self._enqueue_message(message)
            """,
            """
            new = {spawn.agent_id for spawn in outbox.spawned}
            for message in outbox.messages:
                if message.recipient not in new:
                    self._enqueue_message(message)
            """,
        ),
    ),
)

system_messages_are_incomplete = Mutant(
    "the runtime's own messages lose their time and reference",
    "runtime",
    (TornRecord,),
    (
        SourcePatch(
            "system.agents.agent_log",
            "from system.agents.message import Message, MessageKind",
            "from system.agents.message import UNANSWERED, Message, MessageKind",
        ),
        SourcePatch(
            "system.agents.agent_log",
            "line = QueuedLine(key, event.MESSAGE_ENQUEUED, line.data())",
            """
            data = line.data()
            if line.kind in UNANSWERED:
                data.update(timestamp="", reply_to=None, metadata={})
            line = QueuedLine(key, event.MESSAGE_ENQUEUED, data)
            """,
        ),
    ),
)

messages_to_user_are_volatile = Mutant(
    "messages to USER are volatile",
    "runtime",
    (LostAck, LostMessage),
    (
        SourcePatch(
            "system.agents.dispatcher",
            "recipient = self.agents.get(message.recipient)",
            """
            if message.recipient == USER:
                if self.orchestrator.take_turns is not None:
                    self.orchestrator.user.history.pending[message.message_id] = message
                return
            recipient = self.agents.get(message.recipient)
            """,
        ),
    ),
)

bootstrap_is_volatile = Mutant(
    "a child's first message is volatile",
    "runtime",
    (LostSpawn, LostMessage, Reordered, Starved),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            due = list(self.queue.values())
            try:
            """,
            """
            due = list(self.queue.values()) if self.creation is None else []
            try:
            """,
        ),
        SourcePatch(
            "system.agents.dispatcher",
            """
            else:
                if agent.agent_id == USER:
            """,
            """
            else:
                if agent.log.queue:
                    self._retry_later(agent)
                if agent.agent_id == USER:
            """,
        ),
        SourcePatch(
            "system.agents.dispatcher",
            """
            if child.history.ended:
                return
            """,
            """
            if child.history.agent is not None:
                return
            """,
        ),
    ),
)
