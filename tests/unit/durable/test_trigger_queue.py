"""The order of due triggers, and what the queue reads to find it."""

from __future__ import annotations

import pytest

from system.durable.trigger import Trigger, TriggerSource, TriggerStatus
from system.durable.trigger_queue import TriggerQueue


def trigger(
    name: str, due_at: float = 10.0, priority: int = 10, session: str | None = "s"
) -> Trigger:
    return Trigger(
        name, TriggerSource.IMMEDIATE, None, session, due_at, None, due_at, priority, None, "null",
        TriggerStatus.PENDING, 0, None, 0, None, 0, False, None, None, None, due_at, due_at,
    )  # fmt: skip


def queue_of(*triggers: Trigger) -> TriggerQueue:
    queue = TriggerQueue()
    for number, each in enumerate(triggers, 1):
        queue.add(each, number)
    return queue


def order(queue: TriggerQueue, now: float, session: str | None = "s") -> list[str]:
    """Take the due triggers of a session one by one."""
    taken: list[str] = []
    while (found := queue.next_of(session, now)) is not None:
        taken.append(found)
        queue.remove(found)
    return taken


def test_nothing_is_due_before_its_time() -> None:
    queue = queue_of(trigger("a", 10.0))
    assert (queue.next_of("s", 9.999), queue.next_of("s", 10.0)) == (None, "a")
    assert queue.take_due_sessions(10.0) == ["s"]


def test_a_clock_that_is_set_back_makes_due_triggers_future_ones() -> None:
    queue = queue_of(trigger("late", 30.0, priority=1), trigger("early", 20.0, priority=40))
    assert queue.next_of("s", 40.0) == "late"
    assert queue.next_of("s", 25.0) == "early"
    assert queue.take_due_sessions(15.0) == []
    assert queue.next_due_at() == 20.0
    assert order(queue, 30.0) == ["late", "early"]


def test_a_point_of_priority_is_worth_one_second_of_waiting() -> None:
    queue = queue_of(
        trigger("late", 100.0, 1), trigger("early", 60.0, 40), trigger("mid", 60.0, 42)
    )
    assert order(queue, 200.0) == ["early", "late", "mid"]


def test_equal_triggers_come_in_the_order_of_their_rows() -> None:
    first, second = trigger("first"), trigger("second")
    queue = TriggerQueue()
    queue.add(second, 2)
    queue.add(first, 1)
    assert order(queue, 20.0) == ["first", "second"]


def test_sessions_have_their_own_order() -> None:
    queue = queue_of(trigger("a"), trigger("b", session="other"), trigger("c", session=None))
    assert queue.take_due_sessions(20.0) == ["s", "other", None]
    assert queue.take_due_sessions(20.0) == [None]
    assert [order(queue, 20.0, session) for session in ("s", "other", None, "none")] == [
        ["a"], ["b"], ["c"], [],
    ]  # fmt: skip
    assert queue.take_due_sessions(20.0) == []
    assert queue.next_due_at() is None


def test_the_next_time_is_that_of_the_first_future_trigger() -> None:
    queue = queue_of(trigger("a", 10.0), trigger("b", 20.0), trigger("c", 30.0))
    assert queue.next_due_at() == 10.0
    queue.next_of("s", 15.0)
    queue.remove("b")
    assert queue.next_due_at() == 30.0
    queue.remove("c")
    assert queue.next_due_at() is None


@pytest.mark.parametrize("now", [5.0, 15.0, 50.0])
def test_a_trigger_with_another_time_is_there_once(now: float) -> None:
    queue = queue_of(trigger("a"), trigger("b", 11.0))
    queue.take_due_sessions(now)
    queue.add(trigger("a")._replace(due_at=40.0), 1)
    queue.add(trigger("b", 11.0), 2)
    assert order(queue, now) == {5.0: [], 15.0: ["b"], 50.0: ["b", "a"]}[now]


def test_a_session_that_runs_no_turn_costs_nothing() -> None:
    queue = queue_of(*(trigger(f"g{n}", session="gated") for n in range(100)), trigger("a"))
    assert queue.take_due_sessions(20.0) == ["gated", "s"]
    assert order(queue, 20.0) == ["a"]
    assert queue.next_due_at() is None
    assert queue.take_due_sessions(20.0) == []
    queue.add(trigger("later", 30.0, session="gated"), 200)
    assert queue.take_due_sessions(40.0) == ["gated"]


def test_a_withheld_trigger_is_due_again_when_it_is_restored() -> None:
    queue = queue_of(trigger("a", session=None))
    queue.withhold("a")
    assert (queue.next_of(None, 10.0), queue.has_withheld) == (None, True)
    queue.restore()
    assert (queue.next_of(None, 10.0), queue.has_withheld) == ("a", False)
    assert queue.take_due_sessions(10.0) == [None]


def test_a_withheld_trigger_that_is_added_again_is_not_restored_as_it_was() -> None:
    queue = queue_of(trigger("a", session=None))
    queue.withhold("a")
    queue.add(trigger("a"), 1)
    queue.restore()
    assert (queue.next_of(None, 10.0), queue.next_of("s", 10.0)) == (None, "a")


def test_a_withheld_trigger_that_is_removed_is_not_restored() -> None:
    queue = queue_of(trigger("a", session=None))
    queue.withhold("a")
    queue.remove("a")
    assert not queue.has_withheld
    queue.restore()
    assert queue.next_of(None, 10.0) is None
