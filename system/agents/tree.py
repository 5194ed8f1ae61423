"""The tree of agents: parents and children, addresses, and the names in use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from system.agents.message import USER
from system.errors import NameTaken


@dataclass(slots=True)
class Node:
    """One agent; ``parent_id`` is None for a root. ``children`` are the living ones, oldest first.

    ``hidden`` are the names of children that may be living, but cannot be read in this lifetime.
    An agent that has ended keeps its node, because messages may still name it.
    """

    agent_id: str
    session_id: str
    name: str
    parent_id: str | None
    alive: bool = True
    children: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)


class Tree:
    """All agents by id, parents before their children. ``names`` maps agent ids to names."""

    __slots__ = ("_by_name", "_reserved", "names", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.names: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        self._reserved: set[str] = set()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def add(self, node: Node) -> None:
        """Add an agent below its parent, which was added before; its name is no longer reserved."""
        assert node.agent_id not in self.nodes
        assert node.parent_id is None or node.parent_id in self.nodes
        self.nodes[node.agent_id] = node
        self.names[node.agent_id] = node.name
        self._reserved.discard(node.name)
        if not node.alive:
            return
        # If two living agents have one name, which only damage can cause, the older keeps it.
        self._by_name.setdefault(node.name, node.agent_id)
        if node.parent_id is not None:
            self.nodes[node.parent_id].children.append(node.agent_id)

    def end(self, agent_id: str) -> None:
        """Remove an agent from its parent's children, and free its name."""
        node = self.nodes[agent_id]
        assert node.alive
        node.alive = False
        if self._by_name.get(node.name) == agent_id:
            del self._by_name[node.name]
        if node.parent_id is not None:
            self.nodes[node.parent_id].children.remove(agent_id)

    def remove(self, agent_id: str) -> None:
        """Remove an agent that has ended, and whose children were removed."""
        node = self.nodes.pop(agent_id)
        assert not node.alive
        assert not node.children
        del self.names[agent_id]

    def hide(self, parent_id: str, name: str) -> None:
        """Record that ``parent_id`` has a child that cannot be read; the name stays in use."""
        self.nodes[parent_id].hidden.append(name)
        self._reserved.add(name)

    def dependants(self, agent_id: str) -> list[str]:
        """Return the names of all children because of which an agent may not end."""
        node = self.nodes[agent_id]
        return [*(self.names[child] for child in node.children), *node.hidden]

    def reserve(self, name: str) -> None:
        """Reserve a name for an agent to be created; raise ``NameTaken`` if it is in use."""
        if self.is_taken(name):
            raise NameTaken(name)
        self._reserved.add(name)

    def is_taken(self, name: str) -> bool:
        """Whether a living agent, or one to be created, has this name."""
        return name in self._by_name or name in self._reserved

    def release(self, name: str) -> None:
        """End the reservation of a name."""
        self._reserved.discard(name)

    def siblings(self, agent_id: str) -> list[str]:
        """Return the other living children of the same parent; a root has none."""
        parent_id = self.nodes[agent_id].parent_id
        if parent_id is None:
            return []
        return [other for other in self.nodes[parent_id].children if other != agent_id]

    def address(self, agent_id: str, to: str) -> str | None:
        """Return the id of the agent that ``agent_id`` addresses as ``to``, a name or an id.

        None if that is not its parent, its child or its sibling, or has ended.
        """
        node = self.nodes[agent_id]
        if node.parent_id is None and to == USER:
            return USER
        target = to if to in self.nodes else self._by_name.get(to)
        if target is None or not self.nodes[target].alive:
            return None
        near = target == node.parent_id or target in node.children
        return target if near or target in self.siblings(agent_id) else None
