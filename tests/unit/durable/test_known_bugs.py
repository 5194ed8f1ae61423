"""Known bugs C1 to C14 of other designs, each shown closed by a short schedule under its name."""

from __future__ import annotations

from typing import Any

import pytest

from system.durable.activity import Intent
from system.durable.errors import FencedOff, StateStopped
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.stores import Recovered
from system.durable.task import TASKS, TaskStatus
from system.durable.trigger import TriggerSpec
from system.ports import Action, Performed
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_runner import ActionProvider, performed
from tests.unit.durable.test_activity_store import DEDUP, DUMB, KEY, attempt, intend, read, record
from tests.unit.durable.test_schedule_store import fire, made
from tests.unit.durable.test_task_store import kept, resumed

DAY = 86_400


def restarted(bench: Bench) -> Recovered:
    bench.cut_power()
    return bench.do(bench.stores.recover, lambda _: True)


def count(bench: Bench, table: str) -> Any:
    return bench.do(Transaction.execute, f"SELECT count(*) FROM {table}")[0][0]


@pytest.mark.parametrize(("days", "removed"), [(2, 1), (9, 2), (1000, 2)])
def test_c1_a_one_time_schedule_fires_once_although_its_rows_are_removed(
    bench: Bench, days: int, removed: int
) -> None:
    made(bench, kind="once", spec="2020-01-01T00:00:00Z")
    fire(bench)
    bench.advance(days * DAY)
    assert bench.do(remove_settled) == removed
    restarted(bench)
    assert not made(bench, kind="once", spec="2020-01-01T00:00:00Z").created
    assert not made(bench).created
    assert count(bench, "triggers") == 0


def test_c2_a_trigger_that_ends_each_process_is_dead_after_five(bench: Bench) -> None:
    trigger_id = bench.emit()
    for _ in range(5):
        bench.claim(trigger_id)
        restarted(bench)
    row = bench.row(trigger_id)
    assert (row.status, row.attempts) == ("DEAD", 5)


def test_c3_a_claimant_whose_lease_has_ended_settles_nothing(bench: Bench) -> None:
    trigger_id = bench.emit()
    late = bench.claim(trigger_id)
    bench.advance(720)
    bench.do(bench.stores.triggers.reclaim)
    current = bench.claim(trigger_id)
    with pytest.raises(FencedOff, match="fence=1 does not hold it any more, it is CLAIMED fence=2"):
        bench.do(bench.stores.triggers.ack, late)
    assert bench.row(trigger_id) == current.trigger


def test_c4_a_message_is_settled_with_what_its_turn_emits(bench: Bench) -> None:
    message = bench.emit("message:web:1", "MESSAGE")
    bench.claim(message)
    next_one = ("next", TriggerSpec("IMMEDIATE", session_id="s"))
    outbox = StateOutbox("s", 1, message, emitted=(next_one,))
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    with pytest.raises(StateStopped):
        bench.do(bench.stores.apply, outbox)
    bench.cut_power()
    assert (bench.row(message).status, count(bench, "triggers")) == ("CLAIMED", 1)
    assert bench.do(bench.stores.apply, outbox)
    restarted(bench)
    assert [bench.row(each).status for each in (message, "next")] == ["DONE", "PENDING"]


def test_c5_a_claimed_trigger_keeps_what_its_turn_was_shown(bench: Bench) -> None:
    claim = bench.claim(bench.emit("memory:s:1", "MEMORY", payload="old"))
    newer = bench.emit("memory:s:2", "MEMORY", payload="new")
    bench.do(bench.stores.triggers.ack, claim)
    restarted(bench)
    assert (bench.due(), bench.row(newer).payload) == (newer, "new")


@pytest.mark.parametrize("outage_s", [3 * DAY, 1000 * DAY])
def test_c6_an_outage_drops_neither_triggers_nor_tasks(bench: Bench, outage_s: int) -> None:
    overdue = bench.emit()
    kept(bench)
    bench.advance(outage_s)
    restarted(bench)
    bench.do(remove_settled)
    assert bench.due() == overdue
    bench.do(bench.stores.triggers.ack, bench.claim(overdue))
    [resume] = resumed(bench)
    assert bench.due() == resume
    task = bench.do(TASKS.read, "t")
    assert task is not None
    assert task.status is TaskStatus.ACTIVE


def test_c7_a_pause_leaves_the_time_of_a_trigger(bench: Bench) -> None:
    fire_at = bench.now
    trigger_id = bench.emit(fire_at=fire_at)
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "busy")
    restarted(bench)
    row = bench.row(trigger_id)
    assert row.fire_at == fire_at
    assert row.due_at >= fire_at + 30
    bench.advance(40)
    assert bench.claim(trigger_id).late_ns >= 40 * 10**9


def test_c8_one_of_two_callers_attempts(bench: Bench) -> None:
    for _ in range(2):
        intend(bench)
    assert (attempt(bench) is None, attempt(bench) is None) == (False, True)
    assert (count(bench, "activity_log"), read(bench).attempts) == (1, 1)


def test_c9_an_old_activity_is_not_repeated(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Performed("ref", None))
    bench.advance(DAY - 60)
    restarted(bench)
    provider = ActionProvider()
    assert intend(bench).status == "DONE"
    assert performed(bench, provider).provider_ref == "ref"
    assert provider.calls == []


def test_c10_a_second_call_leaves_an_attempt_under_way_as_it_is(bench: Bench) -> None:
    intend(bench, DEDUP)
    attempt(bench)
    before = read(bench)
    assert intend(bench, DEDUP) == before
    assert (attempt(bench), attempt(bench), read(bench)) == (None, None, before)
    assert restarted(bench).to_perform == (KEY,)


@pytest.mark.parametrize("action", [DUMB, DEDUP])
def test_c11_an_outage_does_not_decide_an_activity(bench: Bench, action: Action) -> None:
    intend(bench, action)
    attempt(bench)
    bench.advance(1000 * DAY)
    restarted(bench)
    assert bench.do(remove_settled) == 0
    assert read(bench).status == "UNCERTAIN"
    provider = ActionProvider()
    performed(bench, provider)
    assert provider.calls == []


def test_c12_equal_arguments_are_two_activities_if_meant_twice(bench: Bench) -> None:
    provider = ActionProvider()
    for key in ("activity:t:1", "activity:t:2"):
        intend(bench, key=key)
        assert performed(bench, provider, key).status == "DONE"
    assert [key for _, key, _ in provider.calls] == ["activity:t:1", "activity:t:2"]


def test_c13_a_task_and_its_events_are_durable_together(bench: Bench) -> None:
    kept(bench)
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    with pytest.raises(StateStopped):
        kept(bench, 1, "second", "third")
    bench.cut_power()
    task = bench.do(TASKS.read, "t")
    assert task is not None
    assert (task.last_seq, count(bench, "task_events")) == (1, 1)


def test_c14_what_cannot_be_written_is_not_a_repetition(bench: Bench) -> None:
    bench.fail("write *state.db-wal #1 EIO")
    with pytest.raises(StateStopped):
        bench.emit("immediate:a")
    bench.cut_power()
    assert count(bench, "triggers") == 0
    first = bench.emit("immediate:a")
    bench.do(bench.stores.triggers.ack, bench.claim(first))
    bench.advance(7 * DAY + 1)
    assert bench.emit("immediate:a") != first
    intend(bench)
    bench.do(bench.stores.activities.intend, Intent("activity:t:2", DUMB, {"to": "Anna"}))
    assert count(bench, "activity_log") == 2
