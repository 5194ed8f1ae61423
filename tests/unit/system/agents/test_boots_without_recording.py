"""A boot without recording keeps the lines that a later boot needs to complete records."""

from __future__ import annotations

import errno
from dataclasses import replace

from system.agents.turn_recorder import RecordingOptions
from system.collector import CollectionOptions
from system.runtime import Options
from tests.unit.system.agents.room import SECOND_NS, Room, opened
from tests.unit.system.agents.test_recorded_turns import SEGMENT, records
from tests.unit.system.agents.test_snapshots import segments
from tests.unit.system.collected import HOUR, ended

SHORT = Options(snapshot_lines=3, collection=CollectionOptions(HOUR * SECOND_NS))


def boot(room: Room, recording: RecordingOptions | None) -> None:
    room.options = replace(SHORT, recording=recording)
    room.reopen()


def statuses(room: Room) -> list[object]:
    """The status of the final response of each record; None without one."""
    responses = [record.final_response for record in records(room)]
    return [None if response is None else response["status"] for response in responses]


def with_lost_response() -> tuple[Room, str]:
    """A room in which Ada has taken one turn, of whose response the recording has nothing."""
    room, ada = opened(replace(SHORT, snapshot_lines=100))
    room.files.fail("append", SEGMENT, errno.ENOSPC, nth=4)
    room.say(ada, "first")
    return room, ada


def test_the_log_of_an_agent_begins_no_segment_while_recovery_may_need_its_lines() -> None:
    room, ada = with_lost_response()
    boot(room, None)
    for number in range(5):
        room.say(ada, number)
    assert segments(room, room.session(ada)) == ["events.jsonl"]

    boot(room, RecordingOptions())

    assert room.runtime.report.incomplete == []
    assert statuses(room) == ["success"]
    room.say(ada, "last")
    assert len(segments(room, room.session(ada))) == 2


def test_an_agent_is_not_collected_while_recovery_may_need_its_lines() -> None:
    room, ada = with_lost_response()
    room.run(room.runtime.terminate(ada))
    boot(room, None)
    room.settle(3 * HOUR)
    assert ended(room, ada) is None

    boot(room, RecordingOptions())
    room.settle(3 * HOUR)

    assert statuses(room) == ["success"]
    assert ended(room, ada) is not None


def test_an_agent_whose_open_execution_is_in_a_snapshot_keeps_its_lines() -> None:
    room, ada = with_lost_response()
    session_id = room.session(ada)
    room.kill()
    # Its session cannot be read, so its execution stays open at the checkpoint.
    room.files.fail("open-read", f"agents/{session_id}/events.jsonl", errno.EIO)
    room.open()
    room.run(room.runtime.close())
    assert room.host.files.listdir("snapshots") != []
    boot(room, None)
    for number in range(5):
        room.say(ada, number)
    assert segments(room, session_id) == ["events.jsonl"]


def test_after_a_close_nothing_of_the_recording_keeps_the_lines() -> None:
    room, ada = opened(replace(SHORT, snapshot_lines=100))
    bob = room.create("Bob")
    room.say(bob, "first")
    room.run(room.runtime.terminate(bob))
    room.say(ada, "first")
    room.run(room.runtime.close())
    boot(room, None)
    for number in range(5):
        room.say(ada, number)
    room.settle(3 * HOUR)

    assert len(segments(room, room.session(ada))) > 1
    assert ended(room, bob) is not None
