"""The tree of agents as it must be when nothing crashes and all is idle (V-7).

It is told what each call has done, and knows from there every agent: its name, its parent,
whether it lives, how many turns it took. Each place where a running system keeps its agents
must say the same: the view, the logs, the records, the registries in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from oracles.runtime.seen import Seen
from oracles.runtime.view_laws import ViewLook
from oracles.violation import (
    BrokenTree,
    Duplicated,
    FalseAlarm,
    InvalidState,
    NameTwice,
    OutOfSync,
    Starved,
)

OPEN: Final = "ACTIVE"
CLOSED: Final = "SUSPENDED"
ENDED: Final = "TERMINATED"


class Place(NamedTuple):
    """One agent in the tree. ``pending`` are its messages: none, when all is idle."""

    name: str
    parent_id: str | None
    alive: bool = True
    turns: int = 0
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registries:
    """What a running system keeps in memory about its agents, as plain data.

    ``handlers``: who takes an agent's messages, a session id by agent id; ``sessions`` is the
    way back. ``names`` and ``children`` (the living ones) are by agent id, ``taken`` are the
    names that nobody can be given, ``at_work`` names whatever still runs or holds a lock.
    """

    handlers: Mapping[str, str]
    sessions: Mapping[str, str]
    names: Mapping[str, str]
    children: Mapping[str, Sequence[str]]
    taken: Collection[str]
    at_work: Sequence[str]


class ShadowTree:
    """The specification of one tree; at most ``slots`` conversations are open in it."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._places: dict[str, Place] = {}
        self._responses: list[str] = []

    def is_taken(self, name: str) -> bool:
        """Whether a living agent has this name."""
        return any(place.alive and place.name == name for place in self._places.values())

    def children(self, agent_id: str) -> list[str]:
        """Return the living children of an agent, the oldest first."""
        return [
            child_id
            for child_id, place in self._places.items()
            if place.parent_id == agent_id and place.alive
        ]

    # -- what was done -------------------------------------------------------------------

    def born(self, agent_id: str, name: str, parent_id: str | None) -> None:
        """An agent was made; raise if that was not possible."""
        if agent_id in self._places:
            raise Duplicated("two agents were given one id", agent_id=agent_id, name=name)
        if self.is_taken(name):
            raise NameTwice("a name was given while somebody has it", name=name)
        if parent_id is not None and not self._places[parent_id].alive:
            raise BrokenTree("an agent that has ended was given a child", parent_id=parent_id)
        self._places[agent_id] = Place(name, parent_id)

    def not_born(self, name: str) -> None:
        """An agent was refused; raise if its name was free."""
        if not self.is_taken(name):
            raise FalseAlarm("a free name was refused", name=name)

    def took_turn(self, agent_id: str) -> None:
        """An agent was told something, and answered."""
        place = self._places[agent_id]
        self._places[agent_id] = place._replace(turns=place.turns + 1)

    def ended(self, agent_id: str) -> None:
        """An agent has ended; raise if children of it live."""
        if self.children(agent_id):
            raise BrokenTree("an agent ended before its children", agent_id=agent_id)
        self._places[agent_id] = self._places[agent_id]._replace(alive=False)

    def responded(self, agent_id: str) -> None:
        """An agent has given its result: its parent takes a turn on it, or USER gets it."""
        parent_id = self._places[agent_id].parent_id
        if parent_id is None:
            self._responses.append(agent_id)
        else:
            self.took_turn(parent_id)

    def not_ended(self, agent_id: str) -> None:
        """An end was refused; raise if no child lives."""
        if not self.children(agent_id):
            raise FalseAlarm("an agent without children may not end", agent_id=agent_id)

    # -- what is seen --------------------------------------------------------------------

    def check(self, view: ViewLook, seen: Seen, registries: Registries) -> None:
        """Compare every place with the tree; raise a ``Violation``."""
        if registries.at_work:
            raise Starved("all is idle, and something is not done", at_work=registries.at_work)
        for look in view.agents:
            if look.stopped or look.gated:
                raise OutOfSync("the view shows an agent that may not run", agent=look)
        self._compare("view", {
            look.agent_id: Place(
                look.name, look.parent_id, look.alive, len(look.turns), tuple(look.pending)
            )
            for look in view.agents
        })  # fmt: skip
        self._compare("logs", _places_of(seen))
        self._check_records(seen)
        self._check_registries(registries, seen)
        senders = [message.sender for message in seen.user.enqueued.values()]
        if senders != self._responses or len(view.user) != len(senders):
            raise OutOfSync("USER has other results", log=senders, expected=self._responses)

    def _compare(self, where: str, actual: Mapping[str, Place]) -> None:
        for agent_id in (*self._places, *actual):
            if self._places.get(agent_id) != actual.get(agent_id):
                raise OutOfSync(
                    f"the {where} and the tree differ in one agent", agent_id=agent_id,
                    actual=actual.get(agent_id), expected=self._places.get(agent_id),
                )  # fmt: skip

    def _check_records(self, seen: Seen) -> None:
        states = {
            session.fold.agent_id: session.record.get("state") for session in seen.sessions.values()
        }
        for agent_id, place in self._places.items():
            if states[agent_id] not in ((OPEN, CLOSED) if place.alive else (ENDED,)):
                raise InvalidState("a record is in another state", state=states[agent_id])
        opened = [agent_id for agent_id, state in states.items() if state == OPEN]
        if len(opened) > self._slots:
            raise InvalidState("more sessions are active than there are slots", active=opened)

    def _check_registries(self, registries: Registries, seen: Seen) -> None:
        sessions = {agent_id: seen.session_of(agent_id) for agent_id in self._places}
        living = [place.name for place in self._places.values() if place.alive]
        for what, actual, expected in (
            ("handlers", registries.handlers, sessions),
            ("sessions", registries.sessions, {held: owner for owner, held in sessions.items()}),
            ("names", registries.names, {key: place.name for key, place in self._places.items()}),
            (
                "children",
                {key: sorted(children) for key, children in registries.children.items()},
                {key: sorted(self.children(key)) for key in self._places},
            ),
            ("names that are taken", sorted(registries.taken), sorted(living)),
        ):
            if actual != expected:
                raise OutOfSync(
                    f"the registry of {what} and the tree differ", actual=actual, expected=expected
                )


def _places_of(seen: Seen) -> dict[str, Place]:
    """Return the tree that the logs add up to."""
    places = {}
    for agent_id, fold in seen.agents.items():
        assert fold.agent is not None
        parent = seen.sessions.get(fold.agent.parent_session_id or "")
        places[agent_id] = Place(
            fold.agent.name, parent.fold.agent_id if parent else None, not fold.ended,
            len(fold.turns), tuple(fold.pending),
        )  # fmt: skip
    return places
