"""One damaged row never stops the others: each is left as it is, whatever a flipped bit made."""

from __future__ import annotations

import pytest

from system.durable.ended import Ended, ended_session, insert_ended, oldest_archives
from system.durable.errors import RowDamaged
from system.durable.known_ids import keep_ids
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.task import Checkpoint, TaskStatus
from system.durable.trigger import TRIGGERS
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import intend
from tests.unit.durable.test_schedule_store import fire, living, made, schedule

DAY = 86_400
NO_TEXT = "CAST(x'ff' AS TEXT)"


def spoil(bench: Bench, table: str, column: str, value: str = NO_TEXT) -> None:
    bench.do(Transaction.execute, f"UPDATE {table} SET {column}={value}")


def key_of_next(bench: Bench) -> str:
    return schedule(bench).key_of(schedule(bench).next_fire_at or 0)


def begun(bench: Bench, task_id: str) -> None:
    checkpoint = Checkpoint(task_id, "s", 0, TaskStatus.ACTIVE, None, [("begin", None)])
    bench.do(bench.stores.tasks.checkpoint, checkpoint)


def test_a_boot_reports_what_it_cannot_go_on_with(bench: Bench) -> None:
    bench.emit()
    intend(bench)
    bench.do(bench.stores.reports.add, "a.dead", None, {})
    begun(bench, "t")
    for table in ("triggers", "activity_log", "reports", "tasks"):
        spoil(bench, table, "crc", "'0'")
    bench.kill()
    recovered = bench.do(bench.stores.recover, lambda _: True)
    assert [each.table for each in recovered.damaged] == ["triggers", "activity_log", "reports"]
    assert recovered.to_perform == ()
    assert [type(each) for each in bench.do(bench.stores.tasks.open_tasks)] == [RowDamaged]


def test_a_text_that_became_a_blob_is_damage(bench: Bench) -> None:
    trigger_id = bench.emit()
    # A table that is not STRICT takes the blob.
    bench.do(Transaction.execute, "CREATE TABLE loose AS SELECT * FROM triggers")
    bench.do(Transaction.execute, "DROP TABLE triggers")
    bench.do(Transaction.execute, "ALTER TABLE loose RENAME TO triggers")
    spoil(bench, "triggers", "description", "x'61'")
    with pytest.raises(RowDamaged):
        bench.do(TRIGGERS.read, trigger_id)


@pytest.mark.parametrize("table", ["triggers", "schedules", "tasks"])
def test_a_session_that_is_no_text_does_not_hide_the_others(bench: Bench, table: str) -> None:
    bench.emit(session="other")
    made(bench)
    begun(bench, "t")
    spoil(bench, table, "session_id")
    others = {"other", "s"} if table != "triggers" else {"s"}
    assert {*bench.do(bench.stores.open_sessions)} == others


def test_a_key_that_is_no_text_stays_when_its_trigger_is_settled(bench: Bench) -> None:
    trigger_id = bench.emit("resume:t", "RESUME")
    spoil(bench, "dedup", "key")
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    assert bench.row(trigger_id).status == "DONE"
    assert bench.do(Transaction.execute, "SELECT count(*) FROM dedup") == [(1,)]


def test_rows_that_are_no_text_stay_when_their_time_is_over(bench: Bench) -> None:
    bench.do(bench.stores.triggers.ack, bench.claim(bench.emit("immediate:a")))
    bench.do(lambda each: keep_ids(each, "s", ["m"], are_acknowledged=True))
    bench.advance(DAY)
    assert bench.do(remove_settled) == 1
    spoil(bench, "dedup", "key")
    spoil(bench, "known_ids", "id")
    bench.advance(31 * DAY)
    assert bench.do(remove_settled) == 0


def test_a_collected_agent_whose_id_is_no_text_is_damage(bench: Bench) -> None:
    row = Ended("a", "s", "Ada", None, None, "completed", 1.0, "a.tar")
    bench.do(insert_ended, [row])
    spoil(bench, "ended", "agent_id")
    assert bench.do(oldest_archives, 2.0) == []
    with pytest.raises(RowDamaged, match="table=ended row=s"):
        bench.do(ended_session, "s")


def test_a_damaged_key_of_a_task_does_not_keep_others_from_being_resumed(bench: Bench) -> None:
    begun(bench, "t")
    begun(bench, "u")
    trigger_id = bench.emit("resume:t", "RESUME")
    spoil(bench, "dedup", "crc", "'0'")
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    [resumed] = bench.do(bench.stores.tasks.resume, lambda _: True)
    assert bench.row(resumed).dedup_key == "resume:u"


@pytest.mark.parametrize("table", ["triggers", "dedup"])
def test_a_session_ends_although_its_next_occurrence_is_damaged(bench: Bench, table: str) -> None:
    made(bench)
    made(bench, "b")
    spoil(bench, table, "crc", "'0'")
    bench.do(bench.stores.end_session, "s")
    assert living(bench) == []
    bench.kill()
    bench.advance(60)
    assert bench.due() is None
    assert bench.do(Transaction.execute, f"SELECT count(*) FROM {table}") == [(2,)]


@pytest.mark.parametrize("table", ["triggers", "dedup"])
def test_a_boot_pauses_a_schedule_whose_next_occurrence_is_damaged(
    bench: Bench, table: str
) -> None:
    made(bench)
    for _ in range(4):
        bench.advance(60)
        claim = bench.claim(bench.due() or "")
        bench.do(bench.stores.triggers.fail, claim, "no", retryable=False)
    bench.advance(60)
    claim = bench.claim(bench.due() or "")
    bench.do(lambda each: TRIGGERS.update(each, claim.trigger._replace(attempts=5)))
    condition = "status='PENDING'" if table == "triggers" else f"key='{key_of_next(bench)}'"
    bench.do(Transaction.execute, f"UPDATE {table} SET crc='0' WHERE {condition}")
    bench.kill()
    [reclaimed] = bench.do(bench.stores.recover, lambda _: True).reclaimed
    assert (reclaimed.status, schedule(bench).paused) == ("DEAD", True)
    assert bench.due() is None
    bench.advance(60)
    assert bench.due() is None


def test_a_schedule_whose_next_occurrence_is_damaged_goes_on_after_a_pause(bench: Bench) -> None:
    made(bench)
    spoil(bench, "triggers", "crc", "'0'")
    bench.kill()
    bench.do(bench.stores.schedules.pause, "a")
    bench.do(bench.stores.schedules.resume, "a")
    bench.advance(60)
    assert fire(bench).dedup_key == f"scheduled:a:{round(bench.now)}"


def test_a_schedule_whose_next_key_is_damaged_is_not_resumed(bench: Bench) -> None:
    made(bench)
    spoil(bench, "dedup", "crc", "'0'")
    bench.do(bench.stores.schedules.pause, "a")
    with pytest.raises(RowDamaged):
        bench.do(bench.stores.schedules.resume, "a")
    bench.advance(60)
    bench.do(bench.stores.schedules.resume, "a")
    assert not schedule(bench).paused
