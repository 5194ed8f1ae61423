"""What a turn will do when it commits: collected while it runs, one line in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from system.agents.message import Message
from system.ports import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Spawn:
    """A child that the turn promises."""

    agent_id: str
    session_id: str
    name: str
    instructions: str
    provider: str
    model: str
    bootstrap_id: str

    def data(self) -> JsonObject:
        """Return it as it stands in the turn's line."""
        return {
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "name": self.name,
            "instructions": self.instructions,
            "provider": self.provider,
            "model": self.model,
            "bootstrap_id": self.bootstrap_id,
        }

    @classmethod
    def of_data(cls, data: JsonObject) -> Spawn:
        """Read what ``data`` gave."""
        return cls(**{name: str(data[name]) for name in cls.__slots__})


@dataclass(slots=True)
class Effects:
    """``presented`` are the messages shown so far; ``result`` is that of ``complete``."""

    presented: list[str]
    outbox: list[Message] = field(default_factory=list)
    spawned: dict[str, Spawn] = field(default_factory=dict)
    controls: list[JsonObject] = field(default_factory=list)
    subscribed: list[JsonObject] = field(default_factory=list)
    unsubscribed: list[str] = field(default_factory=list)
    reminders: list[JsonObject] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    metadata: JsonObject = field(default_factory=dict)
    completion: Message | None = None

    def line(
        self, turn_id: str, response: str, provider: JsonObject, returned: Sequence[str],
        *, permitted: bool,
    ) -> JsonObject:  # fmt: skip
        """Return the data of the ``turn.complete`` line: all of it, in one place."""
        outbox = [*self.outbox, *([self.completion] if self.completion else [])]
        data: JsonObject = {
            "turn_id": turn_id,
            "trigger_id": None,
            "presented": list[Json](self.presented),
            "response": response,
            "provider": provider,
            "outbox": [message.data() for message in outbox],
            "spawned": [spawn.data() for spawn in self.spawned.values()],
            "terminate": self.completion is not None,
        }
        some: JsonObject = {
            "controls": list[Json](self.controls),
            "subscribed": list[Json](self.subscribed),
            "unsubscribed": list[Json](self.unsubscribed),
            "reminders": list[Json](self.reminders),
            "cancelled": list[Json](self.cancelled),
            "metadata": self.metadata,
            "returned": list[Json](returned),
            "permitted": permitted,
        }
        data.update({name: value for name, value in some.items() if value})
        return data
