"""The order in which agents are placed in the tree: parents before their children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from system.agents.history import History


class Placement(NamedTuple):
    """``parent_id`` is an agent id, None for a root; ``detached``: its parent is missing."""

    session_id: str
    parent_id: str | None
    detached: bool = False


def parents_first(histories: Mapping[str, History]) -> Iterator[Placement]:
    """Yield every agent of ``histories`` (by session id), roots first, children after parents.

    An agent whose parent is not among them, or whose ancestors form a cycle, counts as a root,
    because its work was accepted and must continue.
    """
    children: dict[str, list[str]] = {}
    roots: list[Placement] = []
    for session_id, history in histories.items():
        data = history.agent
        if data is None:
            continue
        parent = data.parent_session_id
        if parent is None:
            roots.append(Placement(session_id, None))
        elif parent not in histories or histories[parent].agent is None:
            roots.append(Placement(session_id, None, detached=True))
        else:
            children.setdefault(parent, []).append(session_id)
    yield from _below(roots, children, histories)
    while children:
        # Only cycles remain; each is cut at its first member.
        first = min(child for siblings in children.values() for child in siblings)
        for siblings in children.values():
            if first in siblings:
                siblings.remove(first)
        yield from _below([Placement(first, None, detached=True)], children, histories)
        children = {parent: left for parent, left in children.items() if left}


def _below(
    roots: list[Placement], children: dict[str, list[str]], histories: Mapping[str, History]
) -> Iterator[Placement]:
    waiting = roots
    while waiting:
        yield from waiting
        following: list[Placement] = []
        for place in waiting:
            data = histories[place.session_id].agent
            assert data is not None
            following += [
                Placement(child, data.agent_id) for child in children.pop(place.session_id, [])
            ]
        waiting = following
