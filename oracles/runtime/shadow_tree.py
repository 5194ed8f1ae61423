"""The specification of the tree of agents in a runtime that is neither crashed nor faulted.

The caller records the result of each call. After each one the view, the logs, the records and
the registries in memory must all hold the same tree.
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
    """One agent; ``pending`` are its messages, of which an idle system has none."""

    name: str
    parent_id: str | None
    alive: bool = True
    turns: int = 0
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registries:
    """The registries that a running system keeps in memory, as plain data.

    ``handlers`` maps agent ids to the sessions that take their messages, and ``sessions`` maps
    them back. ``names`` and ``children`` (the living ones) are by agent id. ``taken`` are the
    names that are refused to new agents, and ``at_work`` names tasks that still run and locks
    that are still held.
    """

    handlers: Mapping[str, str]
    sessions: Mapping[str, str]
    names: Mapping[str, str]
    children: Mapping[str, Sequence[str]]
    taken: Collection[str]
    at_work: Sequence[str]


class ShadowTree:
    """The specification of one tree, of which at most ``slots`` conversations are open."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._nodes: dict[str, TreeNode] = {}
        self._responses: list[str] = []

    def is_taken(self, name: str) -> bool:
        """Return whether a living agent has this name."""
        return any(node.alive and node.name == name for node in self._nodes.values())

    def children(self, agent_id: str) -> list[str]:
        """Return the living children of an agent, the oldest first."""
        return [
            child_id
            for child_id, node in self._nodes.items()
            if node.parent_id == agent_id and node.alive
        ]

    # -- results of calls ----------------------------------------------------------------

    def add_agent(self, agent_id: str, name: str, parent_id: str | None) -> None:
        """Record that an agent was created; raise if it had to be refused."""
        if agent_id in self._nodes:
            raise Duplicated("a new agent was given an id in use", agent_id=agent_id, name=name)
        if self.is_taken(name):
            raise DuplicateName("a new agent was given the name of a living one", name=name)
        if parent_id is not None and not self._nodes[parent_id].alive:
            raise BrokenTree("an agent that has ended was given a child", parent_id=parent_id)
        self._nodes[agent_id] = TreeNode(name, parent_id)

    def refuse_agent(self, name: str) -> None:
        """Record that a creation was refused; raise if the name was free."""
        if not self.is_taken(name):
            raise FalseAlarm("a free name was refused", name=name)

    def add_turn(self, agent_id: str) -> None:
        """Record that an agent committed a turn."""
        node = self._nodes[agent_id]
        self._nodes[agent_id] = node._replace(turns=node.turns + 1)

    def end_agent(self, agent_id: str) -> None:
        """Record that an agent ended; raise if it has living children."""
        children = self.children(agent_id)
        if children:
            raise BrokenTree(
                "an agent with living children ended", agent_id=agent_id, children=children
            )
        self._nodes[agent_id] = self._nodes[agent_id]._replace(alive=False)

    def refuse_end(self, agent_id: str) -> None:
        """Record that an end was refused; raise if the agent has no living child."""
        if not self.children(agent_id):
            raise FalseAlarm("an agent without living children may not end", agent_id=agent_id)

    def add_response(self, agent_id: str) -> None:
        """Record the response of a completed agent: its parent takes a turn, or USER gets it."""
        parent_id = self._nodes[agent_id].parent_id
        if parent_id is None:
            self._responses.append(agent_id)
        else:
            self.add_turn(parent_id)

    # -- comparison ----------------------------------------------------------------------

    def check(self, view: RuntimeViewLike, snapshot: RootSnapshot, registries: Registries) -> None:
        """Compare the view, the disk and the registries with the tree; raise a ``Violation``."""
        if registries.at_work:
            raise Starved(
                "the system is idle, but a task runs or a lock is held",
                at_work=registries.at_work,
            )
        for agent in view.agents:
            if agent.stopped or agent.gated:
                raise OutOfSync("the view shows a stopped or gated agent", agent=agent)
        self._compare("view", {
            agent.agent_id: TreeNode(
                agent.name, agent.parent_id, agent.alive, agent.turns, tuple(agent.pending)
            )
            for agent in view.agents
        })  # fmt: skip
        self._compare("logs", _nodes_of(snapshot))
        self._check_records(snapshot)
        self._check_registries(registries, snapshot)
        senders = [message.sender for message in snapshot.user.enqueued.values()]
        if senders != self._responses or len(view.user) != len(senders):
            raise OutOfSync(
                "USER has not exactly the responses of the completed roots",
                expected=self._responses, log=senders, view=len(view.user),
            )  # fmt: skip

    def _compare(self, where: str, actual: Mapping[str, TreeNode]) -> None:
        for agent_id in (*self._nodes, *actual):
            if self._nodes.get(agent_id) != actual.get(agent_id):
                raise OutOfSync(
                    f"the {where} and the tree differ in one agent", agent_id=agent_id,
                    expected=self._nodes.get(agent_id), actual=actual.get(agent_id),
                )  # fmt: skip

    def _check_records(self, snapshot: RootSnapshot) -> None:
        states = {
            session.state.agent_id: session.record.get("state")
            for session in snapshot.sessions.values()
        }
        for agent_id, node in self._nodes.items():
            expected = (OPEN, CLOSED) if node.alive else (ENDED,)
            if states[agent_id] not in expected:
                raise InvalidState(
                    "the state in a session record does not match the tree",
                    agent_id=agent_id, expected=expected, actual=states[agent_id],
                )  # fmt: skip
        opened = [agent_id for agent_id, state in states.items() if state == OPEN]
        if len(opened) > self._slots:
            raise InvalidState(
                "more sessions are active than there are slots", slots=self._slots, active=opened
            )

    def _check_registries(self, registries: Registries, snapshot: RootSnapshot) -> None:
        sessions = {agent_id: snapshot.session_of(agent_id) for agent_id in self._nodes}
        living = [node.name for node in self._nodes.values() if node.alive]
        for name, actual, expected in (
            ("handlers", registries.handlers, sessions),
            ("sessions", registries.sessions, {held: owner for owner, held in sessions.items()}),
            ("names", registries.names, {key: node.name for key, node in self._nodes.items()}),
            (
                "children",
                {key: sorted(children) for key, children in registries.children.items()},
                {key: sorted(self.children(key)) for key in self._nodes},
            ),
            ("taken names", sorted(registries.taken), sorted(living)),
        ):
            if actual != expected:
                raise OutOfSync(
                    f"the registry of {name} and the tree differ", expected=expected, actual=actual
                )


def _nodes_of(snapshot: RootSnapshot) -> dict[str, TreeNode]:
    """Return the tree in the logs."""
    nodes = {}
    for agent_id, state in snapshot.agents.items():
        assert state.agent is not None
        parent = snapshot.sessions.get(state.agent.parent_session_id or "")
        nodes[agent_id] = TreeNode(
            state.agent.name, parent.state.agent_id if parent else None, not state.ended,
            len(state.turns), tuple(state.pending),
        )  # fmt: skip
    return nodes
