"""Messages: what one agent, the operator or the runtime tells another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from system.errors import PayloadTooLarge
from system.ports import Json, JsonObject
from system.storage.codec import DEEPEST, canonical

USER: Final = "USER"
"""The operator: recipient of what roots tell their parent."""
RUNTIME: Final = "RUNTIME"
"""The sender of what the runtime itself has to say."""

MOST_PAYLOAD_BYTES: Final = 1 << 20
_LEVELS_ABOVE: Final = 4
"""In the deepest place of a line, a message of an outbox, a payload stands this deep."""


class MessageKind(StrEnum):
    """What a message is."""

    TEXT = "text"
    POKE = "poke"
    BOOTSTRAP = "bootstrap"
    RESPONSE = "response"
    ERROR = "error"
    NOTICE = "notice"
    REMINDER = "reminder"
    SYSTEM = "system"


UNANSWERED: Final = frozenset(
    (MessageKind.ERROR, MessageKind.NOTICE, MessageKind.REMINDER, MessageKind.SYSTEM)
)
"""Kinds about which no error is ever sent, so that errors end."""


_KINDS: Final = {kind.value: kind for kind in MessageKind}
_NOTHING: Final[JsonObject] = {}
"""Never changed, as nothing of a message is."""


class Message(NamedTuple):
    """``sender`` and ``recipient`` are agent ids, ``USER`` or ``RUNTIME``.

    ``timestamp`` is ISO 8601 in UTC, for people only; ``reply_to`` a message id.
    """

    message_id: str
    sender: str
    recipient: str
    kind: MessageKind
    payload: Json
    timestamp: str
    reply_to: str | None = None
    metadata: JsonObject = _NOTHING

    def data(self) -> JsonObject:
        """Return the members of a ``message.enqueued`` line."""
        return {
            "message_id": self.message_id,
            "sender": self.sender,
            "recipient": self.recipient,
            "kind": self.kind.value,
            "payload": self.payload,
            "timestamp": self.timestamp,
            "reply_to": self.reply_to,
            "metadata": self.metadata,
        }

    @classmethod
    def of_data(cls, data: Mapping[str, Json]) -> Message:
        """Read what ``data`` gave; ``KeyError`` or ``ValueError`` if it is none."""
        metadata, reply_to, kind = data["metadata"], data["reply_to"], str(data["kind"])
        if type(metadata) is not dict:
            raise ValueError(f"metadata={metadata!r} is no object")
        return cls(
            str(data["message_id"]),
            str(data["sender"]),
            str(data["recipient"]),
            _KINDS.get(kind) or MessageKind(kind),
            data["payload"],
            str(data["timestamp"]),
            None if reply_to is None else str(reply_to),
            metadata,
        )


def error_about(message: Message, reason: str, timestamp: str) -> Message:
    """Return what the sender of ``message`` is told when nobody will ever see it."""
    return Message(
        f"{message.message_id}.error",
        message.recipient,
        message.sender,
        MessageKind.ERROR,
        {"reason": reason, "message_id": message.message_id},
        timestamp,
        reply_to=message.message_id,
    )


def check_payload(payload: Json) -> None:
    """Raise ``NotPlainJson`` or ``PayloadTooLarge`` for what no message can carry."""
    size_bytes = len(canonical(payload, DEEPEST - _LEVELS_ABOVE))
    if size_bytes > MOST_PAYLOAD_BYTES:
        raise PayloadTooLarge(size_bytes, MOST_PAYLOAD_BYTES)


def prompt_of(messages: Iterable[Message], name_of: Mapping[str, str]) -> str:
    """Return the prompt that shows these messages: canonical JSON, a list of objects.

    ``name_of`` gives the name of an agent by its id.
    """
    shown: list[Json] = [shown_message(message, name_of) for message in messages]
    return canonical(shown).decode("ascii")


def shown_message(message: Message, name_of: Mapping[str, str]) -> JsonObject:
    """Return one message as an agent sees it."""
    return {
        "message_id": message.message_id,
        "sender": message.sender,
        "sender_name": name_of.get(message.sender, message.sender),
        "kind": message.kind.value,
        "payload": message.payload,
        "reply_to": message.reply_to,
    }
