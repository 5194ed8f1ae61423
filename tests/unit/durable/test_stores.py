"""The outbox of a turn line, applied in one transaction; and what a boot does with the rows."""

from __future__ import annotations

import pytest

from system.durable.activity import Intent
from system.durable.errors import StateStopped
from system.durable.state import Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.task import TASKS, Checkpoint, TaskStatus
from system.durable.trigger import SessionStatus, TriggerSpec, TriggerStatus
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import DEDUP, DUMB, read

KEY = "activity:s:turn:0"


def outbox_of_turn(bench: Bench) -> StateOutbox:
    """Return the line of a turn that handles a trigger, and continues its task."""
    handled = bench.emit("resume:t", "RESUME")
    cancelled = bench.emit("reminder:r", "SCHEDULED", fire_at=3e9)
    bench.claim(handled)
    return StateOutbox(
        "s", 7, handled, (cancelled, "unknown"),
        (("next", TriggerSpec("RESUME", session_id="s", key="resume:t")),),
        checkpoints=(Checkpoint("t", "s", 0, TaskStatus.ACTIVE, [], [("step", 1)]),),
        intents=(Intent(KEY, DUMB, {"to": "Anna"}, "s"),),
    )  # fmt: skip


def check_applied(bench: Bench, outbox: StateOutbox) -> None:
    ids = (outbox.trigger_id or "", outbox.superseded[0], "next")
    assert [bench.row(each).status for each in ids] == ["DONE", "DONE", "PENDING"]
    task = bench.do(TASKS.read, "t")
    assert task is not None
    assert task.last_seq == 1
    assert read(bench, KEY).status == "INTENT"


def test_a_line_is_applied_as_a_whole_and_once(bench: Bench) -> None:
    outbox = outbox_of_turn(bench)
    assert bench.do(bench.stores.apply, outbox)
    bench.cut_power()
    check_applied(bench, outbox)
    assert not bench.do(bench.stores.apply, outbox)
    check_applied(bench, outbox)


def test_a_line_that_the_database_has_refused_is_applied_by_the_next_boot(
    bench: Bench,
) -> None:
    outbox = outbox_of_turn(bench)
    bench.fail("write *state.db-wal #1 EIO")
    with pytest.raises(StateStopped):
        bench.do(bench.stores.apply, outbox)
    bench.kill()
    assert bench.row(outbox.trigger_id or "").status is TriggerStatus.CLAIMED
    assert bench.do(bench.stores.apply, outbox)
    check_applied(bench, outbox)


def test_a_trigger_for_a_session_that_has_ended_is_dropped(bench: Bench) -> None:
    outbox = outbox_of_turn(bench)
    bench.sessions.states["s"] = SessionStatus.ENDED
    assert bench.do(bench.stores.apply, outbox)
    assert bench.do(Transaction.execute, "SELECT count(*) FROM triggers") == [(2,)]


def test_a_line_with_an_empty_outbox_is_recorded_as_applied(bench: Bench) -> None:
    assert bench.do(bench.stores.apply, StateOutbox("s", 1))
    assert not bench.do(bench.stores.apply, StateOutbox("s", 1))


def test_a_boot_reports_what_it_has_found(bench: Bench) -> None:
    lost, kept, damaged = bench.emit(), bench.emit(session="other"), bench.emit()
    bench.claim(lost)
    bench.claim(kept)
    for key, action in ((KEY, DEDUP), ("activity:s:turn:1", DUMB)):
        bench.do(bench.stores.activities.intend, Intent(key, action, {}))
        bench.do(bench.stores.activities.attempt, key, {})
    bench.do(Transaction.execute, "UPDATE triggers SET reason='x' WHERE id=?", (damaged,))
    bench.kill()
    found = bench.do(bench.stores.recover, lambda session: session == "s")
    assert [trigger.id for trigger in found.reclaimed] == [lost]
    assert (found.cut, found.to_perform) == (0, (KEY,))
    assert [each.table for each in found.damaged] == ["triggers"]
    assert bench.row(kept).status is TriggerStatus.CLAIMED
    assert bench.due() == lost
    again = bench.do(bench.stores.recover, lambda session: session == "s")
    assert again.reclaimed == ()
