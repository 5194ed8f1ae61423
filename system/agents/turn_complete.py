"""``turn.complete``: the line that commits a turn, as a value.

A turn collects its effects in a ``TurnDraft``. The draft becomes one ``TurnComplete``, which is
encoded into the line and then applied to the history and dispatched; recovery decodes the
same value from the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from system.agents.message import Message
from system.agents.outbox import Control, Outbox, Spawn, objects, strings
from system.agents.turn_work import NO_WORK, TurnWork, WorkDraft
from system.ports import Json, JsonObject


class Reminder(NamedTuple):
    """A message to the agent itself; ``due_ns`` is a wall-clock time in nanoseconds."""

    reminder_id: str
    due_ns: int
    payload: Json

    @classmethod
    def from_data(cls, data: JsonObject) -> Reminder:
        """Decode a member of a line; raise ``KeyError`` or ``ValueError`` for other data."""
        return cls(str(data["reminder_id"]), int(str(data["due_ns"])), data["payload"])


class Subscription(NamedTuple):
    """A request for one notice when the agent ``target`` (an id) ends."""

    subscription_id: str
    target: str


# Not frozen, for a frozen class sets each field by a call, and a recovery makes many turns.
@dataclass(slots=True)
class TurnComplete:
    """All effects of a committed turn; the tables in ``docs/file-formats.md`` have the members.

    ``identity`` is the provider's name for the conversation; ``returned`` are messages that
    were pending, and not presented, when the turn ended the agent. ``dispatched`` is the
    watermark at the commit: the outboxes of all lines of this log up to that number were
    dispatched. ``trigger_id`` is the trigger that the turn has handled, and so settles; ``work``
    are its other changes of ``state.db``, apart from reminders. ``has_state_entries``: its outbox
    has entries for ``state.db``. A committed turn never changes.
    """

    turn_id: str
    presented: Sequence[str]
    response: str
    provider: str
    identity: str
    outbox: Outbox
    terminate: bool = False
    subscribed: Sequence[Subscription] = ()
    unsubscribed: Sequence[str] = ()
    reminders: Sequence[Reminder] = ()
    cancelled: Sequence[str] = ()
    metadata: JsonObject = field(default_factory=dict)
    returned: Sequence[str] = ()
    permitted: bool = False
    dispatched: int = 0
    trigger_id: str | None = None
    work: TurnWork = NO_WORK

    has_state_entries: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compute ``has_state_entries``, which is False for most lines."""
        has_changes = self.reminders or self.cancelled or self.work is not NO_WORK
        self.has_state_entries = bool(has_changes) or self.trigger_id is not None

    def data(self) -> JsonObject:
        """Return the data of the line."""
        outbox = self.outbox
        assert not outbox.foreign, "a turn of another version is never written again"
        data: JsonObject = {
            "turn_id": self.turn_id,
            "trigger_id": self.trigger_id,
            "presented": list[Json](self.presented),
            "response": self.response,
            "provider": {"name": self.provider, "identity": self.identity},
            "outbox": [message.data() for message in outbox.messages],
            "spawned": [spawn.data() for spawn in outbox.spawned],
            "terminate": self.terminate,
        }
        optional: JsonObject = {
            "controls": [control.data() for control in outbox.controls],
            "subscribed": [dict(subscribed._asdict()) for subscribed in self.subscribed],
            "unsubscribed": list[Json](self.unsubscribed),
            "reminders": [dict(reminder._asdict()) for reminder in self.reminders],
            "cancelled": list[Json](self.cancelled),
            "metadata": self.metadata,
            "returned": list[Json](self.returned),
            "permitted": self.permitted,
            "dispatched": self.dispatched,
        }
        if self.work is not NO_WORK:
            optional.update(self.work.data())
        data.update({name: value for name, value in optional.items() if value})
        return data

    @classmethod
    def from_data(cls, data: JsonObject) -> TurnComplete:
        """Decode the result of ``data``; raise ``KeyError`` or ``ValueError`` for other data.

        An outbox of another version raises no error: ``outbox.foreign`` describes it.
        """
        provider, metadata, trigger_id = data["provider"], data.get("metadata"), data["trigger_id"]
        by = provider if isinstance(provider, dict) else {}
        return cls(
            str(data["turn_id"]),
            strings(data["presented"]),
            str(data["response"]),
            str(by.get("name", "")),
            str(by["identity"]),
            Outbox.from_data(data),
            bool(data["terminate"]),
            [
                Subscription(str(item["subscription_id"]), str(item["target"]))
                for item in objects(data.get("subscribed"))
            ],
            strings(data.get("unsubscribed")),
            [Reminder.from_data(item) for item in objects(data.get("reminders"))],
            strings(data.get("cancelled")),
            metadata if isinstance(metadata, dict) else {},
            strings(data.get("returned")),
            "permitted" in data,
            int(str(data.get("dispatched", 0))),
            None if trigger_id is None else str(trigger_id),
            TurnWork.from_data(data),
        )


@dataclass(slots=True)
class TurnDraft:
    """The effects of a turn that is under way; ``completion`` is the result of ``complete``.

    ``presented`` are the ids of the messages shown so far. ``spawned`` is by agent id.
    ``trigger_id`` is the trigger that the turn handles. ``work`` are its other changes of
    ``state.db``, None if it has called no tool for these.
    """

    presented: list[str]
    outbox: list[Message] = field(default_factory=list)
    spawned: dict[str, Spawn] = field(default_factory=dict)
    controls: list[Control] = field(default_factory=list)
    subscribed: list[Subscription] = field(default_factory=list)
    unsubscribed: list[str] = field(default_factory=list)
    reminders: list[Reminder] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    metadata: JsonObject = field(default_factory=dict)
    completion: Message | None = None
    trigger_id: str | None = None
    work: WorkDraft | None = None

    def complete(
        self, turn_id: str, response: str, provider: str, identity: str, pending: Sequence[str],
        *, permitted: bool, dispatched: int,
    ) -> TurnComplete:  # fmt: skip
        """Return the turn; ``pending`` are the ids of the messages that wait when it ends."""
        messages, returned = self.outbox, list[str]()
        if self.completion is not None:
            messages = [*messages, self.completion]
            returned = [key for key in pending if key not in self.presented]
        outbox = Outbox(tuple(messages), tuple(self.spawned.values()), tuple(self.controls))
        return TurnComplete(
            turn_id, self.presented, response, provider, identity, outbox,
            self.completion is not None, self.subscribed, self.unsubscribed, self.reminders,
            self.cancelled, self.metadata, returned, permitted, dispatched, self.trigger_id,
            NO_WORK if self.work is None else self.work.complete(),
        )  # fmt: skip
