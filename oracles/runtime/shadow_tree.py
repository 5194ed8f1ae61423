"""The tree of agents as it must be when nothing crashes and all is idle (V-7).

It is told what each call has done, and knows from there every agent: its name, its parent,
whether it lives, how many turns it took. Each node where a running system keeps its agents
must say the same: the view, the logs, the records, the registries in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.view_laws import RuntimeViewLike
from oracles.runtime.violations import BrokenTree, DuplicateName
from oracles.violation import Duplicated, FalseAlarm, InvalidState, OutOfSync, Starved

OPEN: Final = "ACTIVE"
CLOSED: Final = "SUSPENDED"
ENDED: Final = "TERMINATED"


class TreeNode(NamedTuple):
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
        self._places: dict[str, TreeNode] = {}
        self._responses: list[str] = []

    def is_taken(self, name: str) -> bool:
        """Whether a living agent has this name."""
        return any(node.alive and node.name == name for node in self._places.values())

    def children(self, agent_id: str) -> list[str]:
        """Return the living children of an agent, the oldest first."""
        return [
            child_id
            for child_id, node in self._places.items()
            if node.parent_id == agent_id and node.alive
        ]

    # -- what was done -------------------------------------------------------------------

    def add_agent(self, agent_id: str, name: str, parent_id: str | None) -> None:
        """An agent was made; raise if that was not possible."""
        if agent_id in self._places:
            raise Duplicated("two agents were given one id", agent_id=agent_id, name=name)
        if self.is_taken(name):
            raise DuplicateName("a name was given while somebody has it", name=name)
        if parent_id is not None and not self._places[parent_id].alive:
            raise BrokenTree("an agent that has ended was given a child", parent_id=parent_id)
        self._places[agent_id] = TreeNode(name, parent_id)

    def refuse_agent(self, name: str) -> None:
        """An agent was refused; raise if its name was free."""
        if not self.is_taken(name):
            raise FalseAlarm("a free name was refused", name=name)

    def add_turn(self, agent_id: str) -> None:
        """An agent was told something, and answered."""
        node = self._places[agent_id]
        self._places[agent_id] = node._replace(turns=node.turns + 1)

    def end_agent(self, agent_id: str) -> None:
        """An agent has ended; raise if children of it live."""
        if self.children(agent_id):
            raise BrokenTree("an agent ended before its children", agent_id=agent_id)
        self._places[agent_id] = self._places[agent_id]._replace(alive=False)

    def add_response(self, agent_id: str) -> None:
        """An agent has given its result: its parent takes a turn on it, or USER gets it."""
        parent_id = self._places[agent_id].parent_id
        if parent_id is None:
            self._responses.append(agent_id)
        else:
            self.add_turn(parent_id)

    def refuse_end(self, agent_id: str) -> None:
        """An end was refused; raise if no child lives."""
        if not self.children(agent_id):
            raise FalseAlarm("an agent without children may not end", agent_id=agent_id)

    # -- what is snapshot --------------------------------------------------------------------

    def check(self, view: RuntimeViewLike, snapshot: RootSnapshot, registries: Registries) -> None:
        """Compare every node with the tree; raise a ``Violation``."""
        if registries.at_work:
            raise Starved("all is idle, and something is not done", at_work=registries.at_work)
        for agent_view in view.agents:
            if agent_view.stopped or agent_view.gated:
                raise OutOfSync("the view shows an agent that may not run", agent=agent_view)
        self._compare("view", {
            agent_view.agent_id: TreeNode(
                agent_view.name, agent_view.parent_id, agent_view.alive,
                len(agent_view.turns), tuple(agent_view.pending),
            )
            for agent_view in view.agents
        })  # fmt: skip
        self._compare("logs", _places_of(snapshot))
        self._check_records(snapshot)
        self._check_registries(registries, snapshot)
        senders = [message.sender for message in snapshot.user.enqueued.values()]
        if senders != self._responses or len(view.user) != len(senders):
            raise OutOfSync("USER has other results", log=senders, expected=self._responses)

    def _compare(self, where: str, actual: Mapping[str, TreeNode]) -> None:
        for agent_id in (*self._places, *actual):
            if self._places.get(agent_id) != actual.get(agent_id):
                raise OutOfSync(
                    f"the {where} and the tree differ in one agent", agent_id=agent_id,
                    actual=actual.get(agent_id), expected=self._places.get(agent_id),
                )  # fmt: skip

    def _check_records(self, snapshot: RootSnapshot) -> None:
        recorded_states = {
            session.state.agent_id: session.record.get("state")
            for session in snapshot.sessions.values()
        }
        for agent_id, node in self._places.items():
            if recorded_states[agent_id] not in ((OPEN, CLOSED) if node.alive else (ENDED,)):
                raise InvalidState("a record is in another state", state=recorded_states[agent_id])
        opened = [agent_id for agent_id, recorded in recorded_states.items() if recorded == OPEN]
        if len(opened) > self._slots:
            raise InvalidState("more sessions are active than there are slots", active=opened)

    def _check_registries(self, registries: Registries, snapshot: RootSnapshot) -> None:
        sessions = {agent_id: snapshot.session_of(agent_id) for agent_id in self._places}
        living = [node.name for node in self._places.values() if node.alive]
        for what, actual, expected in (
            ("handlers", registries.handlers, sessions),
            ("sessions", registries.sessions, {held: owner for owner, held in sessions.items()}),
            ("names", registries.names, {key: node.name for key, node in self._places.items()}),
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


def _places_of(snapshot: RootSnapshot) -> dict[str, TreeNode]:
    """Return the tree that the logs add up to."""
    places = {}
    for agent_id, state in snapshot.agents.items():
        assert state.agent is not None
        parent = snapshot.sessions.get(state.agent.parent_session_id or "")
        places[agent_id] = TreeNode(
            state.agent.name, parent.state.agent_id if parent else None, not state.ended,
            len(state.turns), tuple(state.pending),
        )  # fmt: skip
    return places
