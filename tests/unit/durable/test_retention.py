"""Retention: which rows are removed, and which never are."""

from __future__ import annotations

from system.durable.activity import Intent
from system.durable.retention import remove_settled
from system.durable.schedule import ScheduleSpec
from system.durable.state import Transaction
from system.durable.trigger import TRIGGERS
from system.ports import Performed
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import DUMB
from tests.unit.durable.test_task_store import kept

DAY = 86_400


def settled(bench: Bench, key: str | None = None, source: str = "IMMEDIATE") -> str:
    trigger_id = bench.emit(key, source)
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    return trigger_id


def count(bench: Bench, statement: str) -> object:
    return bench.do(Transaction.execute, statement)[0][0]


def test_done_triggers_are_removed_after_a_day(bench: Bench) -> None:
    settled(bench)
    bench.advance(DAY - 1)
    late = settled(bench)
    assert bench.do(remove_settled) == 0
    bench.advance(1)
    assert bench.do(remove_settled) == 1
    assert bench.row(late).resolution == "handled"


def test_undecided_and_waiting_triggers_are_kept_for_ever(bench: Bench) -> None:
    dead, future = bench.emit(), bench.emit(fire_at=3e9)
    bench.do(bench.stores.triggers.fail, bench.claim(dead), "no", retryable=False)
    bench.advance(1000 * DAY)
    assert bench.do(remove_settled) == 0
    assert {bench.row(dead).status, bench.row(future).status} == {"FAILED", "PENDING"}


def test_a_key_of_scope_forever_outlives_its_trigger(bench: Bench) -> None:
    trigger_id = settled(bench, "skill:w:1", "SKILL_WORKFLOW")
    bench.advance(DAY)
    assert bench.do(remove_settled) == 1
    assert bench.do(TRIGGERS.read, trigger_id) is None
    assert bench.emit("skill:w:1", "SKILL_WORKFLOW") == trigger_id


def test_the_key_of_a_reminder_goes_with_its_trigger(bench: Bench) -> None:
    settled(bench, "reminder:r", "SCHEDULED")
    bench.advance(DAY)
    bench.do(remove_settled)
    assert count(bench, "SELECT count(*) FROM dedup") == 0


def test_keys_that_have_ended_are_removed(bench: Bench) -> None:
    settled(bench, "immediate:a")
    bench.emit("living_ui:p:dev", "LIVING_UI")
    last = bench.emit("living_ui:p:crash", "LIVING_UI")
    bench.do(remove_settled)
    assert count(bench, "SELECT count(*) FROM dedup") == 3
    bench.do(bench.stores.triggers.ack, bench.claim(last))
    bench.do(remove_settled)
    assert count(bench, "SELECT group_concat(key) FROM dedup") == "immediate:a"
    bench.advance(7 * DAY)
    bench.do(remove_settled)
    assert count(bench, "SELECT count(*) FROM dedup") == 0


def test_a_key_of_scope_window_outlives_its_trigger(bench: Bench) -> None:
    trigger_id = settled(bench, "immediate:a")
    bench.advance(DAY)
    assert bench.do(remove_settled) == 1
    assert bench.emit("immediate:a") == trigger_id
    bench.advance(6 * DAY)
    assert bench.emit("immediate:a") != trigger_id


def test_a_key_that_a_newer_trigger_has_taken_is_not_that_of_the_older(bench: Bench) -> None:
    settled(bench, "immediate:a")
    bench.advance(8 * DAY)
    newer = bench.emit("immediate:a", fire_at=3e9)
    assert bench.do(remove_settled) == 1
    assert bench.emit("immediate:a") == newer


def test_an_expired_key_of_a_trigger_that_waits_goes_with_it(bench: Bench) -> None:
    dead = bench.emit("immediate:a")
    bench.do(bench.stores.triggers.fail, bench.claim(dead), "no", retryable=False)
    bench.advance(8 * DAY)
    assert bench.do(remove_settled) == 0
    bench.do(bench.stores.triggers.discard, dead)
    bench.advance(DAY)
    assert bench.do(remove_settled) == 2
    assert count(bench, "SELECT count(*) FROM dedup") == 0


def test_ended_schedules_are_removed_after_the_window(bench: Bench) -> None:
    spec = ScheduleSpec("every", "60", session_id="s")
    bench.do(bench.stores.schedules.create, spec, "a")
    bench.do(bench.stores.schedules.create, spec, "b")
    bench.do(bench.stores.schedules.delete, "a")
    bench.advance(7 * DAY)
    bench.do(remove_settled)
    assert count(bench, "SELECT group_concat(schedule_id) FROM schedules") == "b"


def test_the_activity_of_a_program_is_kept_while_the_row_of_its_task_is_damaged(
    bench: Bench,
) -> None:
    kept(bench)
    intent = Intent("activity:a", DUMB, {}, task_id="t")
    bench.do(bench.stores.activities.intend_for_program, intent)
    bench.do(bench.stores.activities.attempt, "activity:a", {})
    bench.do(bench.stores.activities.record, "activity:a", Performed(None, None))
    bench.do(Transaction.execute, "UPDATE tasks SET status='DONE'")
    bench.advance(2 * DAY)
    assert bench.do(remove_settled) == 0
    assert count(bench, "SELECT count(*) FROM activity_log") == 1


def test_damaged_rows_are_kept(bench: Bench) -> None:
    settled(bench)
    bench.emit("immediate:a")
    bench.do(Transaction.execute, "UPDATE triggers SET reason='x' WHERE status='DONE'")
    bench.do(Transaction.execute, "UPDATE dedup SET trigger_id='x'")
    bench.advance(1000 * DAY)
    assert bench.do(remove_settled) == 0
    assert count(bench, "SELECT count(*) FROM triggers") == 2
    assert count(bench, "SELECT count(*) FROM dedup") == 1
