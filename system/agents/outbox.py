"""The outbox of a turn, for other logs; ``apply_outbox.py`` has the part for ``state.db``.

``dispatcher.py`` dispatches it. Messages, children and controls have ids, so that dispatching
them again, after a crash, changes nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeVar

from system.agents import event
from system.agents.message import Message
from system.ports import Json, JsonObject

T = TypeVar("T")

_CONTROL_EVENTS: Final = {
    "gate": event.GATE,
    "ungate": event.UNGATE,
    "permit_turn": event.PERMIT_TURN,
}


class Spawn(NamedTuple):
    """An outbox entry: a child; ``bootstrap_id`` is the id of its first message."""

    agent_id: str
    session_id: str
    name: str
    instructions: str
    provider: str
    model: str
    bootstrap_id: str

    def data(self) -> JsonObject:
        """Return the object in the turn's line."""
        return dict(self._asdict())

    @classmethod
    def from_data(cls, data: JsonObject) -> Spawn:
        """Decode the result of ``data``; raise ``KeyError`` if a member is missing."""
        return cls._make([str(data[name]) for name in cls._fields])


class Control(NamedTuple):
    """An outbox entry: a line about the turns of a child; ``op`` is the name of the tool."""

    control_id: str
    target: str
    op: str

    @property
    def event(self) -> str:
        """The event of that line."""
        return _CONTROL_EVENTS[self.op]

    def data(self) -> JsonObject:
        """Return the object in the turn's line."""
        return {"control_id": self.control_id, "target": self.target, "op": self.op}

    @classmethod
    def from_data(cls, data: JsonObject) -> Control:
        """Decode the result of ``data``; raise ``KeyError`` for one of another version."""
        op = str(data["op"])
        _CONTROL_EVENTS[op]
        return cls(str(data["control_id"]), str(data["target"]), op)


class Outbox(NamedTuple):
    """The entries of one turn for other logs.

    ``foreign`` is the reason why this version cannot dispatch the entries, or is empty. If it
    is set, nothing is dispatched, but ``spawned`` still names the sessions of children, so that
    these are not regarded as orphans.
    """

    messages: tuple[Message, ...] = ()
    spawned: tuple[Spawn, ...] = ()
    controls: tuple[Control, ...] = ()
    foreign: str = ""

    @classmethod
    def from_data(cls, data: JsonObject) -> Outbox:
        """Decode the outbox in the data of a ``turn.complete`` line."""
        spawned = objects(data.get("spawned"))
        try:
            if "spawned" not in data:
                raise KeyError("spawned")
            return cls(
                tuple([Message.from_data(message) for message in objects(data["outbox"])]),
                tuple([Spawn.from_data(spawn) for spawn in spawned]),
                tuple([Control.from_data(control) for control in objects(data.get("controls"))]),
            )
        except (KeyError, TypeError, ValueError) as error:
            blank: JsonObject = dict.fromkeys(Spawn._fields, "")
            named = [Spawn.from_data({**blank, **spawn}) for spawn in spawned]
            return cls(spawned=tuple(named), foreign=repr(error))


EMPTY_OUTBOX: Final = Outbox()


def objects(value: Json) -> list[JsonObject]:
    """Return a list of objects in a line; a missing list is empty."""
    if not value or not isinstance(value, list):
        return []
    return [item if isinstance(item, dict) else {} for item in value]


def strings(value: Json) -> list[str]:
    """Return a list of ids in a line; a missing list is empty."""
    return [str(item) for item in value] if isinstance(value, list) else []
