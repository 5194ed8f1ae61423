"""The order in which agents are placed: parents first, and none is left out."""

from __future__ import annotations

from system.agents.history import History
from system.agents.session_data import AgentData
from system.recovery.parents_first import Placement, parents_first


def logs(*families: tuple[str, str | None]) -> dict[str, History]:
    """Histories of sessions, each with its parent's session; agent ``a1`` has session ``1``."""
    histories = {}
    for session_id, parent in families:
        history = histories[session_id] = History()
        history.agent = AgentData(f"a{session_id}", session_id, parent, "", None)
    return histories


def test_roots_come_first_and_children_after_their_parents() -> None:
    histories = logs(("1", "2"), ("2", "4"), ("3", None), ("4", None), ("5", "3"))

    assert list(parents_first(histories)) == [
        Placement("3", None),
        Placement("4", None),
        Placement("5", "a3"),
        Placement("2", "a4"),
        Placement("1", "a2"),
    ]


def test_a_session_that_is_no_agent_is_not_placed() -> None:
    assert list(parents_first({"1": History()})) == []


def test_a_child_of_a_parent_that_is_not_there_counts_as_a_root() -> None:
    assert list(parents_first(logs(("1", "9"), ("2", "1")))) == [
        Placement("1", None, detached=True),
        Placement("2", "a1"),
    ]


def test_a_child_of_a_session_that_is_no_agent_counts_as_a_root() -> None:
    histories = {"9": History(), **logs(("1", "2"), ("2", "9"))}

    assert list(parents_first(histories)) == [
        Placement("2", None, detached=True),
        Placement("1", "a2"),
    ]


def test_a_circle_is_opened_at_its_first_member() -> None:
    assert list(parents_first(logs(("3", "2"), ("2", "1"), ("1", "3"), ("4", "2")))) == [
        Placement("1", None, detached=True),
        Placement("2", "a1"),
        Placement("3", "a2"),
        Placement("4", "a2"),
    ]


def test_an_agent_that_is_its_own_parent_counts_as_a_root() -> None:
    assert list(parents_first(logs(("1", "1"), ("2", "2")))) == [
        Placement("1", None, detached=True),
        Placement("2", None, detached=True),
    ]
