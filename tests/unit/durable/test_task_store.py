"""Tasks: checkpoints that follow each other, and one trigger that resumes."""

from __future__ import annotations

from typing import Any

import pytest

from system.durable.errors import BadTask, RowDamaged, StaleCheckpoint
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.task import Checkpoint, Task, TaskStatus
from tests.unit.durable.durable_bench import Bench, task_events


def kept(bench: Bench, last_seq: int = 0, *events: str, **changed: Any) -> Task:
    checkpoint = Checkpoint(
        **{
            "task_id": "t", "session_id": "s", "last_seq": last_seq, "status": TaskStatus.ACTIVE,
            "todos": ["a", "b"], "events": [(event, {"n": 1}) for event in events or ("step",)],
            **changed,
        }
    )  # fmt: skip
    return bench.do(bench.stores.tasks.checkpoint, checkpoint)


def resumed(bench: Bench) -> list[str]:
    return bench.do(bench.stores.tasks.resume, lambda session: session == "s")


def test_a_checkpoint_is_kept_with_its_events(bench: Bench) -> None:
    kept(bench, 0, "begin", "plan", turn_id="turn")
    bench.cut_power()
    task = kept(bench, 2, "act", status=TaskStatus.WAITING, todos=["b"])
    assert (task.last_seq, task.status, task.todos, task.turn_id) == (3, "WAITING", ["b"], None)
    assert task.created_at < task.updated_at
    events = bench.do(task_events, "t")
    assert [(each.seq, each.event, each.data_json) for each in events] == [
        (1, "begin", '{"n":1}'), (2, "plan", '{"n":1}'), (3, "act", '{"n":1}'),
    ]  # fmt: skip


@pytest.mark.parametrize("last_seq", [0, 1, 3])
def test_a_checkpoint_of_an_older_state_is_refused(bench: Bench, last_seq: int) -> None:
    task = kept(bench, 0, "begin", "plan")
    with pytest.raises(StaleCheckpoint, match=f"last_seq={last_seq}, the task has last_seq=2"):
        kept(bench, last_seq)
    assert kept(bench, 2).created_at == task.created_at


def test_a_first_checkpoint_begins_at_0(bench: Bench) -> None:
    with pytest.raises(StaleCheckpoint):
        kept(bench, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"events": []}, "give it at least one event"),
        ({"status": TaskStatus.BLOCKED}, "no status=BLOCKED"),
        ({"session_id": "other"}, "belongs to session=s"),
    ],
)
def test_a_bad_checkpoint_is_refused(bench: Bench, changed: dict[str, Any], message: str) -> None:
    kept(bench)
    with pytest.raises(BadTask, match=message):
        kept(bench, 1, **changed)
    assert len(bench.do(task_events, "t")) == 1


@pytest.mark.parametrize("status", [TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.CANCELLED])
def test_a_task_that_has_ended_is_not_continued(bench: Bench, status: TaskStatus) -> None:
    kept(bench, status=status)
    with pytest.raises(BadTask, match=f"is {status}; begin another task"):
        kept(bench, 1)
    assert resumed(bench) == []


def test_an_active_task_is_resumed_by_one_trigger(bench: Bench) -> None:
    kept(bench)
    bench.advance(1000)
    [trigger_id] = resumed(bench)
    row = bench.row(trigger_id)
    assert (row.source, row.priority, row.session_id) == ("RESUME", 5, "s")
    assert row.payload == {"task_id": "t", "last_seq": 1, "age_s": 1000}
    for _ in range(3):
        bench.kill()
        bench.do(bench.stores.triggers.reclaim)
        assert resumed(bench) == []


def test_the_oldest_of_the_active_tasks_of_an_agent_is_resumed(bench: Bench) -> None:
    kept(bench, task_id="b")
    kept(bench, task_id="a")
    [trigger_id] = resumed(bench)
    assert bench.row(trigger_id).dedup_key == "resume:b"
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    kept(bench, 1, task_id="b", status=TaskStatus.DONE)
    [trigger_id] = resumed(bench)
    assert bench.row(trigger_id).dedup_key == "resume:a"


@pytest.mark.parametrize("reason", ["waiting", "another trigger", "not living", "damaged"])
def test_a_task_that_something_else_wakes_is_not_resumed(bench: Bench, reason: str) -> None:
    waiting = TaskStatus.WAITING if reason == "waiting" else TaskStatus.ACTIVE
    kept(bench, status=waiting, session_id="other" if reason == "not living" else "s")
    if reason == "another trigger":
        bench.emit(fire_at=3e9)
    if reason == "damaged":
        bench.do(Transaction.execute, "UPDATE tasks SET todos_json='[]'")
    assert resumed(bench) == []


def test_a_task_that_no_boot_advances_is_blocked_with_one_dead_letter(bench: Bench) -> None:
    kept(bench)
    for _ in range(8):
        bench.kill()
        bench.do(bench.stores.triggers.reclaim)
        resumed(bench)
        due = bench.due()
        if due is not None:
            bench.claim(due)
    rows = bench.do(Transaction.execute, "SELECT status, count(*) FROM triggers GROUP BY status")
    assert rows == [("DEAD", 1)]
    assert bench.do(Transaction.execute, "SELECT status FROM tasks") == [("BLOCKED",)]
    assert kept(bench, 1).status is TaskStatus.ACTIVE
    assert len(resumed(bench)) == 1


def test_a_boot_knows_the_blocked_tasks(bench: Bench) -> None:
    kept(bench)
    bench.do(bench.stores.tasks.block, "t", "resuming it has failed")
    assert bench.stores.tasks.blocked == {"t"}
    bench.kill()
    tasks = bench.do(bench.stores.tasks.open_tasks)
    assert [task.task_id for task in tasks if isinstance(task, Task)] == ["t"]
    assert bench.stores.tasks.blocked == {"t"}


def test_tasks_end_with_their_session(bench: Bench) -> None:
    kept(bench)
    kept(bench, task_id="done", status=TaskStatus.DONE)
    kept(bench, task_id="other", session_id="other")
    kept(bench, task_id="waiting", status=TaskStatus.WAITING)
    kept(bench, task_id="blocked")
    bench.do(bench.stores.tasks.block, "blocked", "why")
    kept(bench, task_id="damaged")
    bench.do(Transaction.execute, "UPDATE tasks SET todos_json='[]' WHERE task_id='damaged'")
    bench.do(bench.stores.end_session, "s")
    assert bench.do(Transaction.execute, "SELECT task_id, status FROM tasks ORDER BY 1") == [
        ("blocked", "CANCELLED"), ("damaged", "ACTIVE"), ("done", "DONE"), ("other", "ACTIVE"),
        ("t", "CANCELLED"), ("waiting", "CANCELLED"),
    ]  # fmt: skip


def test_a_damaged_task_is_neither_blocked_nor_overwritten(bench: Bench) -> None:
    kept(bench)
    bench.do(Transaction.execute, "UPDATE tasks SET todos_json='[]'")
    bench.do(bench.stores.tasks.block, "t", "why")
    with pytest.raises(RowDamaged):
        kept(bench, 1)


def test_ended_tasks_are_removed_after_a_week_with_their_events(bench: Bench) -> None:
    kept(bench, task_id="active")
    kept(bench, 0, "a", "b", status=TaskStatus.DONE)
    kept(bench, task_id="damaged", status=TaskStatus.DONE)
    bench.do(Transaction.execute, "UPDATE tasks SET todos_json='[]' WHERE task_id='damaged'")
    bench.advance(7 * 86_400)
    assert bench.do(remove_settled) == 1
    found = bench.do(Transaction.execute, "SELECT task_id FROM task_events ORDER BY 1")
    assert found == [("active",), ("damaged",)]
