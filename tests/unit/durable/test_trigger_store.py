"""Claims: held by one turn, counted before it runs, settled once."""

from __future__ import annotations

import pytest

from system.durable.errors import (
    AlreadyDecided,
    FencedOff,
    NoRecipient,
    RowDamaged,
    UnknownTrigger,
)
from system.durable.state import Transaction
from system.durable.task import TASKS, Task, TaskStatus
from system.durable.trigger import SessionStatus, TriggerStatus
from system.durable.trigger_store import LEASE_NS
from tests.unit.durable.durable_bench import Bench

NS = 10**9


def test_a_claim_is_counted_durably_before_it_is_handled(bench: Bench) -> None:
    trigger_id = bench.emit()
    claim = bench.claim(trigger_id)
    bench.cut_power()
    row = bench.row(trigger_id)
    assert row == claim.trigger
    assert (row.status, row.attempts, row.fence, row.epoch) == ("CLAIMED", 1, 1, 1)
    assert row.lease_until is not None
    assert round(row.lease_until - row.updated_at) == LEASE_NS // NS == 720
    assert bench.due() is None


def test_a_claim_says_how_late_it_is(bench: Bench) -> None:
    trigger_id = bench.emit(fire_at=bench.now + 5)
    bench.advance(305)
    late_s = bench.claim(trigger_id).late_ns / NS
    assert 300 <= late_s < 301


@pytest.mark.parametrize("reason", ["future", "claimed", "done", "unknown"])
def test_only_a_due_pending_trigger_is_claimed(bench: Bench, reason: str) -> None:
    trigger_id = bench.emit(fire_at=bench.now + (1000 if reason == "future" else 0))
    if reason in {"claimed", "done"}:
        claim = bench.claim(trigger_id)
        if reason == "done":
            bench.do(bench.stores.triggers.ack, claim)
    asked = "unknown" if reason == "unknown" else trigger_id
    assert bench.do(bench.stores.triggers.claim, asked) is None


def test_an_acknowledged_trigger_is_done_without_its_body(bench: Bench) -> None:
    trigger_id = bench.emit(payload="secret words")
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    bench.cut_power()
    row = bench.row(trigger_id)
    assert (row.status, row.resolution, row.payload, row.description) == (
        "DONE", "handled", None, None,
    )  # fmt: skip
    bench.state.close()
    assert b"secret words" not in bench.host.files.read("state.db")[0]


@pytest.mark.parametrize("newer", ["reclaimed", "claimed again", "settled"])
def test_a_late_claimant_settles_nothing(bench: Bench, newer: str) -> None:
    trigger_id = bench.emit()
    late = bench.claim(trigger_id)
    bench.kill()
    bench.do(bench.stores.triggers.reclaim)
    if newer != "reclaimed":
        second = bench.claim(trigger_id)
        if newer == "settled":
            bench.do(bench.stores.triggers.ack, second)
    before = bench.row(trigger_id)
    store = bench.stores.triggers
    for call in (
        lambda: bench.do(store.ack, late),
        lambda: bench.do(store.fail, late, "no"),
        lambda: bench.do(store.give_back, late),
        lambda: bench.do(store.route, late, "s"),
    ):
        with pytest.raises(FencedOff, match="drop the work"):
            call()
    assert bench.row(trigger_id) == before


def test_the_fence_grows_even_where_attempts_do_not(bench: Bench) -> None:
    trigger_id = bench.emit()
    for fence in (1, 2, 3):
        claim = bench.claim(trigger_id)
        assert (claim.trigger.fence, claim.trigger.attempts) == (fence, 1)
        bench.do(bench.stores.triggers.give_back, claim)
        assert bench.row(trigger_id).attempts == 0


def test_a_failed_trigger_waits_twice_as_long_each_time_and_then_is_dead(bench: Bench) -> None:
    fire_at = bench.now
    trigger_id = bench.emit(fire_at=fire_at)
    pauses = []
    for _ in range(4):
        assert bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "busy") == "PENDING"
        row = bench.row(trigger_id)
        assert bench.due() is None
        assert row.fire_at == fire_at
        pauses.append(row.due_at - row.updated_at)
        bench.advance(pauses[-1])
        assert bench.due() == trigger_id
    for pause, least in zip(pauses, (30, 60, 120, 240), strict=True):
        assert least <= pause <= least * 1.25 + 0.001
    assert bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "busy") == "DEAD"
    row = bench.row(trigger_id)
    assert (row.status, row.reason, row.payload, row.attempts) == ("DEAD", "busy", "body", 5)
    assert bench.due() is None


def test_a_failure_that_no_repetition_can_help_is_failed_at_once(bench: Bench) -> None:
    claim = bench.claim(bench.emit())
    failed = bench.do(bench.stores.triggers.fail, claim, "unknown action", retryable=False)
    assert failed is TriggerStatus.FAILED


def test_a_boot_reclaims_whatever_epoch_a_claim_names(bench: Bench) -> None:
    trigger_id = bench.emit()
    bench.claim(trigger_id)
    bench.epoch = 0
    bench.kill()
    assert [row.id for row in bench.do(bench.stores.triggers.reclaim)] == [trigger_id]
    row = bench.row(trigger_id)
    assert (row.status, row.attempts, row.lease_until) == ("PENDING", 1, None)
    assert bench.due() == trigger_id


def test_a_second_recovery_reclaims_nothing(bench: Bench) -> None:
    bench.claim(bench.emit())
    bench.kill()
    bench.do(bench.stores.triggers.reclaim)
    row = bench.row(bench.due() or "")
    bench.kill()
    assert bench.do(bench.stores.triggers.reclaim) == []
    assert bench.row(row.id) == row


def test_a_trigger_that_kills_the_process_is_dead_after_five_claims(bench: Bench) -> None:
    trigger_id = bench.emit()
    for _ in range(5):
        assert bench.row(trigger_id).status is TriggerStatus.PENDING
        bench.claim(trigger_id)
        bench.kill()
        bench.do(bench.stores.triggers.reclaim)
    row = bench.row(trigger_id)
    assert (row.status, row.attempts) == ("DEAD", 5)
    assert row.reason == "its turn has ended without a result, attempts=5"


def test_claims_of_sessions_that_are_not_served_stay(bench: Bench) -> None:
    kept, lost = bench.emit(), bench.emit(session="other")
    bench.claim(kept)
    bench.claim(lost)
    bench.kill()
    reclaimed = bench.do(bench.stores.triggers.reclaim, lambda row: row.session_id != "s")
    assert [row.id for row in reclaimed] == [lost]
    assert bench.row(kept).status is TriggerStatus.CLAIMED


def test_a_durable_line_settles_a_trigger_whatever_its_row_says(bench: Bench) -> None:
    store = bench.stores.triggers
    waiting, claimed, done, failed = [bench.emit() for _ in range(4)]
    bench.claim(claimed)
    bench.do(store.ack, bench.claim(done))
    bench.do(store.fail, bench.claim(failed), "no", retryable=False)
    for trigger_id in (waiting, claimed, done, failed, "unknown"):
        bench.do(store.settle, trigger_id)
    statuses = {bench.row(each).status for each in (waiting, claimed, done, failed)}
    assert statuses == {TriggerStatus.DONE}
    assert bench.due() is None


def test_a_pause_that_a_wrong_clock_has_made_long_is_cut(bench: Bench) -> None:
    wrong, future = bench.emit(), bench.emit(fire_at=bench.now + 10**8)
    bench.world.clock.step_wall(10**7 * NS)
    bench.do(bench.stores.triggers.fail, bench.claim(wrong), "busy")
    fire_at = bench.row(wrong).fire_at
    bench.world.kill()
    bench.world.clock.step_wall(-(10**7) * NS)
    bench.boot()
    assert bench.do(bench.stores.triggers.cut_pauses) == 1
    row = bench.row(wrong)
    assert row.fire_at == fire_at
    assert 3599 < row.due_at - bench.now <= 3600
    assert bench.row(future).due_at > bench.now + 10**7
    bench.advance(3600)
    assert bench.due() == wrong


# -- routing, and the end of a session -------------------------------------------------


def test_a_routed_trigger_begins_with_no_attempts(bench: Bench) -> None:
    trigger_id = bench.emit(source="MESSAGE", session=None)
    assert bench.due(None) == trigger_id
    claim = bench.claim(trigger_id)
    bench.do(bench.stores.triggers.route, claim, "other")
    row = bench.row(trigger_id)
    assert (row.session_id, row.routed, row.attempts, row.status) == ("other", True, 0, "PENDING")
    assert bench.due(None) is None
    assert bench.due("other") == trigger_id


def test_a_route_that_kills_the_process_is_counted(bench: Bench) -> None:
    trigger_id = bench.emit(source="MESSAGE", session=None)
    bench.claim(trigger_id)
    bench.kill()
    bench.do(bench.stores.triggers.reclaim)
    assert bench.row(trigger_id).attempts == 1


def test_the_end_of_a_session_leaves_no_open_trigger_of_it(bench: Bench) -> None:
    reminder = bench.emit("reminder:r", "SCHEDULED", fire_at=2e9)
    claimed, waiting, other = bench.emit(), bench.emit(), bench.emit(session="other")
    bench.claim(claimed)
    routed = bench.emit(source="MESSAGE", session=None)
    bench.do(bench.stores.triggers.route, bench.claim(routed), "s")
    bench.do(bench.stores.triggers.end_session, "s")
    rows = [bench.row(each) for each in (reminder, claimed, waiting, routed, other)]
    assert [row.status for row in rows] == ["DONE", "FAILED", "FAILED", "PENDING", "PENDING"]
    assert (rows[0].resolution, rows[1].reason) == ("superseded", "its session has ended")
    assert (rows[3].session_id, rows[3].routed) == (None, False)
    assert bench.due("s") is None
    assert bench.due(None) == routed


def test_a_cancelled_reminder_is_superseded_once(bench: Bench) -> None:
    reminder = bench.emit("reminder:r", "SCHEDULED", fire_at=2e9)
    bench.do(bench.stores.triggers.cancel, reminder)
    row = bench.row(reminder)
    bench.advance(1)
    bench.do(bench.stores.triggers.cancel, reminder)
    bench.do(bench.stores.triggers.cancel, "unknown")
    assert (row.status, row.resolution) == ("DONE", "superseded")
    assert bench.row(reminder) == row
    assert bench.emit("reminder:r", "SCHEDULED") == reminder


# -- the decision of a person ----------------------------------------------------------


def dead(bench: Bench, key: str | None = None, source: str = "IMMEDIATE") -> str:
    trigger_id = bench.emit(key, source)
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    return trigger_id


def test_a_retried_trigger_has_all_its_attempts(bench: Bench) -> None:
    trigger_id = dead(bench)
    bench.do(bench.stores.triggers.retry, trigger_id)
    row = bench.row(trigger_id)
    assert (row.status, row.attempts, row.fence, row.reason) == ("PENDING", 0, 1, None)
    assert bench.due() == trigger_id


def test_a_trigger_whose_session_has_ended_is_not_retried(bench: Bench) -> None:
    trigger_id = dead(bench)
    bench.sessions.states["s"] = SessionStatus.ENDED
    with pytest.raises(NoRecipient, match="ended"):
        bench.do(bench.stores.triggers.retry, trigger_id)
    assert bench.row(trigger_id).status == "FAILED"


def test_a_routed_trigger_whose_session_has_ended_is_retried_by_routing_it_again(
    bench: Bench,
) -> None:
    trigger_id = bench.emit(source="MESSAGE", session=None)
    bench.do(bench.stores.triggers.route, bench.claim(trigger_id), "s")
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    bench.sessions.states["s"] = SessionStatus.ENDED
    bench.do(bench.stores.triggers.retry, trigger_id)
    row = bench.row(trigger_id)
    assert (row.status, row.session_id, row.routed) == ("PENDING", None, False)
    assert bench.due(None) == trigger_id


def test_a_discarded_trigger_is_done(bench: Bench) -> None:
    trigger_id = dead(bench)
    bench.do(bench.stores.triggers.discard, trigger_id)
    assert bench.row(trigger_id).resolution == "discarded"
    with pytest.raises(AlreadyDecided, match="is DONE, so there is nothing to decide"):
        bench.do(bench.stores.triggers.discard, trigger_id)


def test_a_trigger_under_way_is_not_decided(bench: Bench) -> None:
    trigger_id = bench.emit()
    with pytest.raises(AlreadyDecided, match="is PENDING"):
        bench.do(bench.stores.triggers.retry, trigger_id)
    with pytest.raises(UnknownTrigger, match="triggers list"):
        bench.do(bench.stores.triggers.retry, "unknown")


def test_a_retried_trigger_takes_its_key_again(bench: Bench) -> None:
    trigger_id = dead(bench, "memory:s:1", "MEMORY")
    bench.do(bench.stores.triggers.retry, trigger_id)
    assert bench.emit("memory:s:1", "MEMORY") == trigger_id


def test_a_trigger_whose_key_a_newer_one_holds_is_not_retried(bench: Bench) -> None:
    trigger_id = dead(bench, "memory:s:1", "MEMORY")
    newer = bench.emit("memory:s:1", "MEMORY")
    assert newer != trigger_id
    with pytest.raises(AlreadyDecided, match=f"replaced by '{newer}'"):
        bench.do(bench.stores.triggers.retry, trigger_id)
    bench.do(bench.stores.triggers.discard, trigger_id)
    assert bench.emit("memory:s:1", "MEMORY") == newer


@pytest.mark.parametrize("status", [TaskStatus.ACTIVE, TaskStatus.DONE])
def test_a_task_whose_resume_is_dead_is_blocked_until_a_person_retries(
    bench: Bench, status: TaskStatus
) -> None:
    task = Task("t", "s", status, "[]", 3, None, None, 1.0, 1.0)
    bench.do(TASKS.insert, task)

    def found() -> Task:
        row = bench.do(TASKS.read, "t")
        assert row is not None
        return row

    trigger_id = dead(bench, "resume:t", "RESUME")
    if status is TaskStatus.DONE:
        assert found() == task
        return
    assert (found().status, found().reason) == ("BLOCKED", "resuming it is FAILED: no")
    bench.do(bench.stores.triggers.retry, trigger_id)
    assert (found().status, found().reason) == ("ACTIVE", None)


# -- damage ----------------------------------------------------------------------------


def test_a_damaged_trigger_is_reported_and_neither_run_nor_removed(bench: Bench) -> None:
    whole, damaged = bench.emit(), bench.emit()
    statement = "UPDATE triggers SET status='PENDIOG' WHERE id=?"
    bench.do(lambda transaction: transaction.execute(statement, (damaged,)))
    with pytest.raises(RowDamaged):
        bench.do(bench.stores.triggers.claim, damaged)
    bench.world.kill()
    bench.boot()
    reported = bench.do(bench.stores.triggers.load)
    assert [(each.table, each.key) for each in reported] == [("triggers", "rowid 2")]
    assert bench.due() == whole
    bench.claim(whole)
    assert bench.due() is None
    bench.do(bench.stores.triggers.end_session, "s")
    assert bench.do(lambda transaction: transaction.execute("SELECT count(*) FROM triggers")) == [
        (2,)
    ]


def test_text_that_is_not_unicode_is_damage(bench: Bench) -> None:
    bench.emit()
    spoil = "UPDATE triggers SET description=CAST(x'ff' AS TEXT)"
    bench.do(lambda transaction: transaction.execute(spoil))
    assert len(bench.do(bench.stores.triggers.load)) == 1


def test_a_damaged_key_outlives_its_trigger(bench: Bench) -> None:
    trigger_id = bench.emit("resume:t", "RESUME")
    bench.do(Transaction.execute, "UPDATE dedup SET trigger_id='x'")
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    assert bench.do(Transaction.execute, "SELECT count(*) FROM dedup") == [(1,)]


def test_damaged_rows_are_neither_reclaimed_nor_cut(bench: Bench) -> None:
    claimed, paused = bench.emit(), bench.emit()
    bench.claim(claimed)
    far = "UPDATE triggers SET not_before=3e9, due_at=3e9 WHERE id=?"
    bench.do(Transaction.execute, far, (paused,))
    bench.do(Transaction.execute, "UPDATE triggers SET reason='x' WHERE id=?", (claimed,))
    assert bench.do(bench.stores.triggers.reclaim) == []
    assert bench.do(bench.stores.triggers.cut_pauses) == 0


def test_a_retried_trigger_takes_its_own_key_again_and_no_superseded_one(bench: Bench) -> None:
    older = bench.emit("memory:s:1", "MEMORY")
    trigger_id = bench.emit("memory:s:2", "MEMORY")
    assert bench.emit("memory:s:1", "MEMORY") == trigger_id
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    bench.do(bench.stores.triggers.retry, trigger_id)
    assert bench.emit("memory:s:2", "MEMORY") == trigger_id
    assert bench.emit("memory:s:1", "MEMORY") not in (older, trigger_id)
