"""Messages between agents, the operator and the runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar, cast

from system.errors import PayloadTooLarge
from system.ports import Clock, Json, JsonObject
from system.storage.codec import DEEPEST, canonical, canonical_of_plain
from system.storage.line import timestamp

T = TypeVar("T")

USER: Final = "USER"
"""The operator: recipient of the messages that roots send to their parent."""
USER_SESSION: Final = "0" * 32
"""The session id in the log of USER."""
RUNTIME: Final = "RUNTIME"
"""Sender of the runtime's own messages."""

MOST_PAYLOAD_BYTES: Final = 1 << 20
_LEVELS_ABOVE: Final = 4
"""The levels of nesting above a payload in a line, at most: in a message of an outbox."""


class MessageKind(StrEnum):
    """The purpose of a message; ``docs/runtime.md`` has the table."""

    TEXT = "text"
    POKE = "poke"
    BOOTSTRAP = "bootstrap"
    RESPONSE = "response"
    ERROR = "error"
    NOTICE = "notice"
    REMINDER = "reminder"
    SYSTEM = "system"
    TRIGGER = "trigger"
    ACTIVITY = "activity"


UNANSWERED: Final = frozenset(
    (MessageKind.ERROR, MessageKind.NOTICE, MessageKind.REMINDER, MessageKind.SYSTEM)
)
"""Kinds about which no error is ever sent, so that errors end."""
ANSWERED_IF_DEAD: Final = frozenset((MessageKind.BOOTSTRAP, MessageKind.ACTIVITY))
"""Kinds about which no error is sent if the recipient has ended, but one if they are dead."""
_REPORTED_MEMBERS: Final = ("activity_id", "action", "status")
"""The members of an outcome that an error about it repeats."""

_KINDS: Final = {kind.value: kind for kind in MessageKind}
_NO_METADATA: Final[JsonObject] = {}
"""Shared by all messages without metadata; a message is never changed."""


class Message(NamedTuple):
    """``sender`` and ``recipient`` are agent ids, ``USER`` or ``RUNTIME``.

    ``timestamp`` is ISO 8601 in UTC, for display only; ``reply_to`` is a message id.
    """

    message_id: str
    sender: str
    recipient: str
    kind: MessageKind
    payload: Json
    timestamp: str
    reply_to: str | None = None
    metadata: JsonObject = _NO_METADATA

    @property
    def error_recipient(self) -> str:
        """The agent id, or USER, that gets the error if this message is never read.

        The runtime has sent the outcome of an activity, so USER gets the error about it.
        """
        return USER if self.kind is MessageKind.ACTIVITY else self.sender

    def data(self) -> JsonObject:
        """Return the data of a ``message.enqueued`` line."""
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
    def from_data(cls, data: Mapping[str, Json]) -> Message:
        """Decode the result of ``data``; raise ``KeyError`` or ``ValueError`` for other data."""
        metadata, reply_to, kind = data["metadata"], data["reply_to"], str(data["kind"])
        message_id = data["message_id"]
        if type(metadata) is not dict or type(message_id) is not str:
            raise ValueError(f"message_id={message_id!r}, metadata={metadata!r}")
        return cls(
            message_id,
            str(data["sender"]),
            str(data["recipient"]),
            _KINDS.get(kind) or MessageKind(kind),
            data["payload"],
            str(data["timestamp"]),
            None if reply_to is None else str(reply_to),
            metadata,
        )

    @classmethod
    def checked(
        cls, clock: Clock, message_id: str, sender: str, recipient: str, kind: MessageKind,
        payload: Json, reply_to: str | None = None,
    ) -> Message:  # fmt: skip
        """Return a message with the present time; raise as ``check_payload`` for its payload."""
        kept, now = kept_payload(payload), timestamp(clock.wall_ns())
        return cls(message_id, sender, recipient, kind, kept, now, reply_to)


def error_about(message: Message, reason: str, now: str) -> Message:
    """Return the error about a ``message`` that its recipient will never read."""
    payload: JsonObject = {"reason": reason, "message_id": message.message_id}
    if message.kind is MessageKind.ACTIVITY:
        assert isinstance(message.payload, dict), message.payload
        payload.update((name, message.payload[name]) for name in _REPORTED_MEMBERS)
    return Message(
        f"{message.message_id}.error",
        message.recipient,
        message.error_recipient,
        MessageKind.ERROR,
        payload,
        now,
        reply_to=message.message_id,
    )


def check_payload(payload: Json) -> None:
    """Raise ``NotPlainJson`` or ``PayloadTooLarge`` if no message can carry ``payload``."""
    size_bytes = len(canonical(payload, DEEPEST - _LEVELS_ABOVE))
    if size_bytes > MOST_PAYLOAD_BYTES:
        raise PayloadTooLarge(size_bytes, MOST_PAYLOAD_BYTES)


def kept_payload(payload: T) -> T:
    """Return a payload as a log will give it back: its caller may change the original later.

    Raises as ``check_payload``.
    """
    check_payload(cast("Json", payload))
    return detached(payload)


def detached(value: T) -> T:
    """Return a copy of plain data, with sorted keys, for foreign code, which may change it."""
    return cast("T", _copy(cast("Json", value)))


def _copy(value: Json) -> Json:
    if type(value) is dict:
        return {key: _copy(value[key]) for key in sorted(value)}
    if type(value) is list:
        return [_copy(item) for item in value]
    return value


class Prompt(NamedTuple):
    """A prompt that shows messages; ``text`` is the canonical JSON of ``items``, a list."""

    text: str
    items: list[JsonObject]


def prompt_of(messages: Iterable[Message], name_of: Mapping[str, str]) -> Prompt:
    """Return the prompt that shows these messages.

    ``name_of`` maps agent ids to names. Payloads were checked when they were accepted.
    """
    items = [shown_message(message, name_of) for message in messages]
    return Prompt(canonical_of_plain(list[Json](items)).decode("ascii"), items)


def shown_message(message: Message, name_of: Mapping[str, str]) -> JsonObject:
    """Return one message as prompts and ``check_inbox`` show it."""
    return {
        "message_id": message.message_id,
        "sender": message.sender,
        "sender_name": name_of.get(message.sender, message.sender),
        "kind": message.kind.value,
        "payload": message.payload,
        "reply_to": message.reply_to,
    }
