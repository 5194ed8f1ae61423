"""Reports to the operator: what has stopped is said once, whatever crashes come between."""

from __future__ import annotations

import pytest

from system.durable.report import REPORTS
from system.errors import StorageError
from system.runtime import Options
from tests.unit.system.agents.emitting import DAY, emit, fail_disk, status
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, Room, opened

ONCE = Options(most_attempts=1)


def dead(options: Options = ONCE) -> tuple[Room, str, str]:
    """A root whose agent has failed over a trigger, which is dead."""
    room, ada = opened(options)
    room.provider.fail("sent")
    trigger_id = emit(room, ada)
    assert status(room, trigger_id) == ("DEAD", 1)
    return room, ada, trigger_id


def reported(room: Room) -> list[str]:
    return [message.message_id for message in room.runtime.view().user]


def rows(room: Room) -> int:
    state = room.runtime._orchestrator.state
    assert state is not None
    return len(list(state.transact(lambda each: list(REPORTS.select(each, "1")))))


def test_a_trigger_that_is_dead_is_reported_in_the_log_of_user() -> None:
    room, ada, trigger_id = dead()
    [message] = room.runtime.view().user
    assert (message.message_id, message.sender, message.kind) == (
        f"{trigger_id}.dead", "RUNTIME", "system",
    )  # fmt: skip
    assert isinstance(message.payload, dict)
    assert message.payload["status"] == "DEAD"
    assert message.payload["session_id"] == room.session(ada)
    room.check_no_failures()


def test_a_report_comes_once() -> None:
    room, _, trigger_id = dead()
    for _ in range(3):
        room.reopen()
        room.settle()
        assert reported(room) == [f"{trigger_id}.dead"]
    assert rows(room) == 0
    room.run(room.runtime.acknowledge(f"{trigger_id}.dead"))
    room.reopen()
    room.settle()
    assert reported(room) == []


def test_a_report_that_was_acknowledged_before_a_snapshot_does_not_come_again() -> None:
    room, ada, trigger_id = dead(Options(most_attempts=1, snapshot_lines=3))
    room.run(room.runtime.acknowledge(f"{trigger_id}.dead"))
    room.settle(5)
    for number in range(4):
        room.say(ada, script(("send_message", {"to": "USER", "payload": number})))
    assert room.exists("user/events.1.jsonl")
    assert rows(room) == 1

    room.reopen()
    room.settle()

    assert f"{trigger_id}.dead" not in reported(room)
    assert rows(room) == 0


def test_a_report_that_a_crash_has_prevented_comes_with_the_boot() -> None:
    room, ada = opened(ONCE)
    room.provider.fail("sent")
    fail_disk(room, "write *user/events.jsonl #1+ ENOSPC")
    trigger_id = emit(room, ada)
    assert (reported(room), rows(room)) == ([], 1)
    room.reopen(start=False)
    assert reported(room) == [f"{trigger_id}.dead"]
    assert rows(room) == 0


def test_a_report_that_the_disk_refuses_comes_when_it_has_room() -> None:
    room, ada = opened(ONCE)
    room.provider.fail("sent")
    injector = fail_disk(room, "write *user/events.jsonl #1+ ENOSPC")
    trigger_id = emit(room, ada)
    injector.remove()
    room.settle(5)
    assert reported(room) == [f"{trigger_id}.dead"]


def test_a_trigger_that_dies_at_a_boot_is_reported_by_it() -> None:
    room, ada = opened(ONCE)

    async def hang() -> None:
        room.provider.hooks.clear()
        await room.host.clock.sleep(DAY * SECOND_NS)

    room.provider.hooks["send"] = hang
    trigger_id = emit(room, ada)
    room.reopen(start=False)
    assert status(room, trigger_id) == ("DEAD", 1)
    assert reported(room) == [f"{trigger_id}.dead"]


def test_the_triggers_of_an_agent_that_has_ended_are_reported() -> None:
    room, _, bob = parent_and_child()
    trigger_id = emit(room, bob, in_s=DAY)
    room.run(room.runtime.terminate(bob))
    room.settle()
    assert status(room, trigger_id) == ("FAILED", 0)
    assert reported(room) == [f"{trigger_id}.dead"]


def test_a_log_that_begins_a_new_segment_does_not_forget_what_a_report_has_said() -> None:
    room, ada = opened(Options(most_attempts=1, snapshot_lines=0))
    room.provider.fail("sent")
    trigger_id = emit(room, ada)
    room.settle(1)
    room.run(room.runtime.acknowledge(f"{trigger_id}.dead"))
    assert rows(room) == 1
    room.reopen()
    room.settle()
    assert reported(room) == []
    assert rows(room) == 0


def test_a_log_of_user_that_has_stopped_gets_its_reports_from_the_next_boot() -> None:
    room, ada = opened(ONCE)
    room.provider.fail("sent")
    fail_disk(room, "fsync *user/events.jsonl #1 EIO:ext4")
    trigger_id = emit(room, ada)
    assert room.runtime.view().user_stopped
    room.kill()
    room.open()
    assert reported(room) == [f"{trigger_id}.dead"]


def test_a_database_that_refuses_the_report_refuses_the_end_of_the_trigger() -> None:
    room, ada = opened(ONCE)
    emit(room, ada, in_s=DAY)
    room.provider.fail("sent")
    trigger_id = emit(room, ada, in_s=1)
    # The claim is the next commit, and what fails the trigger the one after it.
    fail_disk(room, "fsync *state.db-wal #2 EIO:ext4")
    room.settle(1)
    assert reported(room) == []
    with pytest.raises(StorageError):
        emit(room, ada)
    room.reopen(start=False)
    assert status(room, trigger_id) == ("DEAD", 1)
    assert reported(room) == [f"{trigger_id}.dead"]
