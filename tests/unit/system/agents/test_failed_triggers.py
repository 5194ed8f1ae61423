"""Triggers whose turns fail, crash or are refused; and a database that does not fit its logs."""

from __future__ import annotations

import errno

import pytest

from system.durable.errors import NoRecipient, StateMissing, StateOutdated
from system.durable.trigger import TriggerSpec, TriggerStatus
from system.runtime import Options
from tests.unit.system.agents.emitting import (
    DAY,
    emit,
    fail_disk,
    fail_when_asked,
    row,
    status,
)
from tests.unit.system.agents.room import SECOND_NS, opened


def test_a_provider_that_fails_counts_and_the_trigger_waits_longer_each_time() -> None:
    room, ada = opened(Options(most_attempts=2))
    room.provider.fail("send", 2)
    trigger_id = emit(room, ada)
    assert status(room, trigger_id) == ("PENDING", 1)
    room.settle(29)
    assert status(room, trigger_id) == ("PENDING", 1)

    room.settle(120)

    assert status(room, trigger_id) == ("DEAD", 2)
    assert row(room, trigger_id).reason == "send failed"
    room.check_no_failures()


def test_a_poison_trigger_does_not_take_the_messages_along() -> None:
    room, ada = opened()
    room.provider.fail("send")
    emit(room, ada)
    room.say(ada, "hello")
    room.settle(5)

    assert room.shown() == [("text", "hello")]


def test_a_turn_that_the_disk_refuses_does_not_count() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    room.files.fail("append", "events.jsonl", errno.ENOSPC)
    trigger_id = emit(room, ada)
    room.settle(5)

    assert status(room, trigger_id) == ("DONE", 1)
    assert row(room, trigger_id).fence == 2


def test_a_turn_whose_line_is_in_doubt_keeps_its_trigger_until_the_next_boot() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    room.files.fail("fdatasync", "events.jsonl", errno.EIO)
    trigger_id = emit(room, ada)
    room.settle(DAY)
    assert (status(room, trigger_id), len(room.provider.prompts)) == (("CLAIMED", 1), 2)

    room.reopen()
    room.settle(DAY)

    assert row(room, trigger_id).status is TriggerStatus.DONE


def test_a_line_whose_transaction_a_crash_has_prevented_is_applied_by_the_boot() -> None:
    room, ada = opened()
    emit(room, ada)
    injector = fail_when_asked(room, "write *state.db-wal #1 EIO")
    trigger_id = emit(room, ada)
    injector.remove()
    assert room.lines(room.session(ada))[-1].data["trigger_id"] == trigger_id
    prompts = len(room.provider.prompts)

    report = room.reopen().report
    room.settle(DAY)

    assert (report.applied, report.reclaimed) == (1, [])
    assert (status(room, trigger_id), len(room.provider.prompts)) == (("DONE", 1), prompts)
    assert room.reopen().report.applied == 0


def test_a_turn_that_a_crash_interrupts_gives_its_trigger_back_counted() -> None:
    room, ada = opened()

    room.provider.hooks["send"] = lambda: room.host.clock.sleep(DAY * SECOND_NS)
    emit(room, ada)
    room.provider.hooks.clear()

    report = room.reopen().report
    room.settle()

    assert len(report.reclaimed) == 1
    assert status(room, report.reclaimed[0]) == ("DONE", 2)


def test_a_full_disk_delays_the_settling_and_a_retry_does_it() -> None:
    room, ada = opened()
    emit(room, ada)
    injector = fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    trigger_id = emit(room, ada)
    assert status(room, trigger_id) == ("CLAIMED", 1)
    injector.remove()

    room.settle(5)

    assert status(room, trigger_id) == ("DONE", 1)
    room.check_no_failures()


def test_idle_waits_for_work_in_the_database_that_a_full_disk_delays() -> None:
    room, ada = opened()
    emit(room, ada)
    injector = fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    trigger_id = emit(room, ada)
    idle = room.world.loop.create_task(room.runtime.idle())
    room.settle(5)
    assert not idle.done()
    injector.remove()

    room.run(idle)

    assert status(room, trigger_id) == ("DONE", 1)


def test_close_does_not_wait_for_work_in_the_database_that_a_full_disk_delays() -> None:
    room, ada = opened()
    emit(room, ada)
    fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    emit(room, ada)
    before_ns = room.host.clock.monotonic_ns()

    room.run(room.runtime.close())

    assert room.host.clock.monotonic_ns() - before_ns < SECOND_NS // 10


def test_a_full_disk_delays_the_claim_and_messages_are_shown_without_it() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    injector = fail_disk(room, "write *state.db-wal #1+ ENOSPC")
    room.settle(60)
    room.say(ada, "hello")
    room.settle(5)
    assert room.shown() == [("text", "hello")]
    assert status(room, trigger_id) == ("PENDING", 0)

    injector.remove()
    room.settle(120)

    assert status(room, trigger_id) == ("DONE", 1)


def test_no_agent_is_woken_by_a_trigger_while_the_work_of_others_waits() -> None:
    room, ada = opened()
    bob = room.create("Bob")
    trigger_id = emit(room, bob, in_s=60)
    emit(room, ada)
    injector = fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    settled_id = emit(room, ada)
    asked = list(room.provider.asked)

    room.settle(300)

    assert room.provider.asked == asked
    assert room.named("Bob").trouble == ""
    assert sum(injector.fired) < 20
    injector.remove()
    room.settle(60)
    assert status(room, settled_id) == status(room, trigger_id) == ("DONE", 1)
    room.check_no_failures()


def test_a_database_that_has_stopped_leaves_the_messages_to_their_turns() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    injector = fail_disk(room, "fsync *state.db-wal #1+ EIO:ext4")
    room.settle(60)
    injector.remove()
    room.say(ada, "hello")
    room.settle(5)
    assert room.shown() == [("text", "hello")]
    room.check_no_failures()

    room.reopen()
    room.settle(60)

    assert row(room, trigger_id).status is TriggerStatus.DONE


def test_the_triggers_of_an_agent_that_ends_fail() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    session_id = room.session(ada)
    room.run(room.runtime.terminate(ada))
    room.settle()

    assert status(room, trigger_id) == ("FAILED", 0)
    with pytest.raises(NoRecipient):
        room.run(room.runtime.emit(TriggerSpec("IMMEDIATE", session_id=session_id)))


def test_an_end_that_the_database_has_refused_is_repeated_by_the_boot() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    fail_disk(room, "write *state.db-wal #1 EIO")
    room.run(room.runtime.terminate(ada))
    room.reopen()

    assert status(room, trigger_id) == ("FAILED", 0)


def test_an_older_copy_of_the_database_is_refused() -> None:
    room, ada = opened()
    emit(room, ada)
    room.run(room.runtime.close())
    older = room.read("state.db")
    room.reopen()
    emit(room, ada)
    emit(room, ada)
    room.run(room.runtime.close())
    room.kill()
    room.write("state.db", older)

    with pytest.raises(StateOutdated):
        room.open()


def test_a_lost_database_is_not_replaced_by_an_empty_one() -> None:
    room, ada = opened()
    emit(room, ada)
    room.run(room.runtime.close())
    room.kill()
    room.host.files.unlink("state.db")

    with pytest.raises(StateMissing):
        room.open()
