"""Losses and repetitions that durable execution prevents, each with its exact schedule.

First the failure modes of triggers and actions, then the parts of the cure, in the order in
which a runtime without them would get them. Each says its steps, its crash and its rows.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from system.durable.activity import Decision, Intent
from system.durable.errors import BadTrigger, FencedOff, KeyOfAnotherSource, StateStopped
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.stores import Recovered
from system.durable.task import TASKS, Checkpoint, TaskStatus
from system.durable.trigger import TRIGGERS, TriggerSource, TriggerSpec
from system.ports import Performed
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_runner import ActionProvider, performed
from tests.unit.durable.test_activity_store import (
    DEDUP,
    DUMB,
    KEY,
    attempt,
    intend,
    read,
    record,
    resolve,
)
from tests.unit.durable.test_schedule_store import fire, made, schedule, waiting

DAY = 86_400
CRASHES = pytest.mark.parametrize("crash", [Bench.kill, Bench.cut_power])
Crash = Callable[[Bench], None]


def recovered(bench: Bench) -> Recovered:
    return bench.do(bench.stores.recover, lambda _: True)


def statuses(bench: Bench) -> list[str]:
    found = bench.do(Transaction.execute, "SELECT status FROM triggers ORDER BY rowid")
    return [str(status) for (status,) in found]


# -- failure modes of triggers -----------------------------------------------------------


@CRASHES
def test_mode_1_a_trigger_that_was_produced_and_not_run_is_not_lost(
    bench: Bench, crash: Crash
) -> None:
    now, later = bench.emit(payload="now"), bench.emit(payload="later", fire_at=bench.now + DAY)
    bench.claim(now)
    crash(bench)
    [reclaimed] = recovered(bench).reclaimed
    assert (reclaimed.id, reclaimed.status, reclaimed.attempts) == (now, "PENDING", 1)
    assert (bench.due(), bench.row(now).payload) == (now, "now")
    bench.do(bench.stores.triggers.ack, bench.claim(now))
    assert bench.due() is None
    bench.advance(DAY)
    assert (bench.due(), bench.row(later).payload) == (later, "later")


@CRASHES
@pytest.mark.parametrize("settled", [False, True])
def test_mode_2_a_producer_that_emits_again_after_a_crash_makes_no_second_trigger(
    bench: Bench, crash: Crash, settled: bool
) -> None:
    first = bench.emit("skill:w:1", "SKILL_WORKFLOW")
    if settled:
        bench.do(bench.stores.triggers.ack, bench.claim(first))
    crash(bench)
    assert bench.emit("skill:w:1", "SKILL_WORKFLOW") == first
    assert statuses(bench) == ["DONE" if settled else "PENDING"]


@CRASHES
def test_mode_3_a_restart_neither_delays_a_trigger_nor_moves_a_schedule(
    bench: Bench, crash: Crash
) -> None:
    made(bench)
    anchor = round(schedule(bench).created_at)
    trigger_id = bench.emit(fire_at=anchor + 60.0)
    for _ in range(3):
        bench.advance(10)
        crash(bench)
        recovered(bench)
    assert bench.row(trigger_id).fire_at == anchor + 60.0
    assert [row.fire_at for row in waiting(bench)] == [anchor + 60.0] * 2
    bench.advance(anchor + 60 - bench.now)
    assert bench.due() == trigger_id
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    assert fire(bench).fire_at == anchor + 60
    assert [row.fire_at for row in waiting(bench)] == [anchor + 120.0]


def test_mode_4_a_trigger_without_a_known_producer_does_not_come_in(bench: Bench) -> None:
    emit = bench.stores.emitter.emit
    with pytest.raises(BadTrigger, match="OTHER"):
        bench.do(emit, TriggerSpec("OTHER", session_id="s"))
    with pytest.raises(KeyOfAnotherSource, match="belongs to source=SKILL_WORKFLOW"):
        bench.do(emit, TriggerSpec("IMMEDIATE", session_id="s", key="skill:w:1"))
    assert statuses(bench) == []
    bench.cut_power()
    assert statuses(bench) == []


def test_mode_5_a_message_is_durable_before_the_router_is_asked(bench: Bench) -> None:
    message = bench.emit("message:web:1", "MESSAGE", session=None)
    bench.cut_power()
    assert (bench.row(message).status, bench.row(message).session_id) == ("PENDING", None)
    assert bench.due(None) == message


# -- failure modes of actions ------------------------------------------------------------


@CRASHES
def test_mode_6_an_effect_without_its_record_is_not_repeated(bench: Bench, crash: Crash) -> None:
    intend(bench)
    assert attempt(bench) is not None
    crash(bench)
    assert recovered(bench).to_perform == ()
    provider = ActionProvider()
    assert performed(bench, provider).status == "UNCERTAIN"
    assert provider.calls == []
    resolve(bench, Decision.AGAIN)
    assert performed(bench, provider).status == "DONE"
    assert len(provider.calls) == 1


@CRASHES
def test_mode_6_an_effect_without_its_record_is_asked_for_with_its_key(
    bench: Bench, crash: Crash
) -> None:
    row = intend(bench, DEDUP)
    assert attempt(bench) is not None
    crash(bench)
    assert recovered(bench).to_perform == (row.idem_key,)
    provider = ActionProvider()
    assert (performed(bench, provider).status, read(bench).attempts) == ("DONE", 2)
    assert provider.calls == [("pay", row.idem_key, {"to": "Anna"})]


@CRASHES
def test_mode_7_the_evidence_of_an_effect_is_a_row(bench: Bench, crash: Crash) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Performed("ref-1", {"id": 7}))
    crash(bench)
    recovered(bench)
    provider = ActionProvider()
    row = performed(bench, provider)
    assert (row.status, row.provider_ref, row.result) == ("DONE", "ref-1", {"id": 7})
    assert provider.calls == []


# -- the parts of the cure ---------------------------------------------------------------


@CRASHES
def test_phase_0_a_one_time_schedule_that_has_run_does_not_run_again(
    bench: Bench, crash: Crash
) -> None:
    made(bench, kind="once", spec="2020-01-01T00:00:00Z")
    first = bench.claim(bench.due() or "")
    crash(bench)
    [reclaimed] = recovered(bench).reclaimed
    assert reclaimed.id == first.trigger.id
    assert fire(bench).attempts == 2
    crash(bench)
    recovered(bench)
    assert not made(bench, kind="once", spec="2020-01-01T00:00:00Z").created
    assert statuses(bench) == ["DONE"]


@CRASHES
def test_phase_0_an_outage_is_caught_up_by_one_trigger(bench: Bench, crash: Crash) -> None:
    made(bench)
    anchor = round(schedule(bench).created_at)
    crash(bench)
    bench.advance(anchor + 330 - bench.now)
    recovered(bench)
    caught_up = fire(bench)
    assert (caught_up.fire_at, caught_up.missed) == (anchor + 60, 4)
    assert [row.fire_at for row in waiting(bench)] == [anchor + 360.0]


@CRASHES
def test_phase_1_the_queue_is_that_of_the_rows(bench: Bench, crash: Crash) -> None:
    low, high = bench.emit(priority=10), bench.emit("resume:t", "RESUME")
    future = bench.emit(fire_at=bench.now + DAY)
    crash(bench)
    recovered(bench)
    order = []
    for _ in range(2):
        claim = bench.claim(bench.due() or "")
        order.append(claim.trigger.id)
        bench.do(bench.stores.triggers.ack, claim)
    assert order == [high, low]
    assert bench.due() is None
    bench.advance(DAY)
    assert bench.due() == future


def test_phase_2_every_producer_has_its_type(bench: Bench) -> None:
    for source in TriggerSource:
        if source not in ("SCHEDULED", "MESSAGE", "IMMEDIATE"):
            with pytest.raises(BadTrigger):
                bench.emit(None, source)
    assert statuses(bench) == []
    assert bench.row(bench.emit("resume:t", "RESUME")).source is TriggerSource.RESUME


@CRASHES
def test_phase_3_a_route_is_durable_and_counts_no_attempt(bench: Bench, crash: Crash) -> None:
    message = bench.emit("message:web:1", "MESSAGE", session=None)
    claim = bench.claim(message)
    bench.do(bench.stores.triggers.route, claim, "s")
    crash(bench)
    assert recovered(bench).reclaimed == ()
    row = bench.row(message)
    assert (row.status, row.session_id, row.routed, row.attempts) == ("PENDING", "s", True, 0)
    assert (bench.due(None), bench.due()) == (None, message)
    with pytest.raises(FencedOff):
        bench.do(bench.stores.triggers.route, claim, "other")


@CRASHES
def test_phase_4_a_turn_and_its_activities_are_durable_together(bench: Bench, crash: Crash) -> None:
    outbox = StateOutbox(
        "s", 1, bench.emit(), emitted=(("next", TriggerSpec("IMMEDIATE", session_id="s")),),
        checkpoints=(Checkpoint("t", "s", 0, TaskStatus.ACTIVE, [], [("step", 1)]),),
        intents=(Intent(KEY, DUMB, {"to": "Anna"}, "s"),),
    )  # fmt: skip
    bench.claim(outbox.trigger_id or "")
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    with pytest.raises(StateStopped, match="repair the disk"):
        bench.do(bench.stores.apply, outbox)
    crash(bench)
    # The boot drops the pages that the barrier has lost, so that it reads what is on the disk.
    assert statuses(bench) == ["CLAIMED"]
    assert bench.do(bench.stores.apply, outbox) is True
    assert recovered(bench).to_perform == (KEY,)
    task = bench.do(TASKS.read, "t")
    assert task is not None
    assert (statuses(bench), task.last_seq) == (["DONE", "PENDING"], 1)


def test_phase_5_what_fails_each_time_is_dead_and_waits_for_a_person(bench: Bench) -> None:
    trigger_id = bench.emit()
    for attempts in range(1, 6):
        assert bench.claim(trigger_id).trigger.attempts == attempts
        bench.cut_power()
        recovered(bench)
    assert (bench.row(trigger_id).status, bench.due()) == ("DEAD", None)
    bench.advance(1000 * DAY)
    assert bench.do(remove_settled) == 0
    bench.do(bench.stores.triggers.discard, trigger_id)
    bench.advance(DAY)
    bench.do(remove_settled)
    assert bench.do(TRIGGERS.read, trigger_id) is None
