"""Passes 3 and 4: logs that are torn, damaged, newer, or cannot be read."""

from __future__ import annotations

import errno

import pytest

from system.agents.message import USER, USER_SESSION
from system.runtime import Options
from system.sessions.session_problem import Problem
from system.storage.codec import seal
from system.storage.framing import Framing
from system.storage.line import Line, encode_line
from tests.unit.system.agents.boot import problems, recovered
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    NOW,
    ONE,
    TWO,
    Room,
    created,
    enqueued,
    log_of,
    opened,
)


def test_lines_that_the_database_names_and_the_log_lacks_are_reported_as_missing() -> None:
    room, ada = opened()
    room.say(ada, script(("remind_me", {"delay_ns": 10**15, "payload": "tea"})))
    session_id = room.session(ada)
    applied = room.agent(ada).applied
    room.kill()
    lines = room.read(log_of(session_id)).splitlines(keepends=True)
    room.write(log_of(session_id), b"".join(lines[: applied - 2]))

    assert room.open().report.missing == {session_id: ((applied - 1, applied),)}
    room.settle()
    assert room.reopen().report.missing == {session_id: ((applied - 1, applied),)}


def test_lost_segments_of_the_operators_log_are_reported_as_missing() -> None:
    room, ada = opened(Options(snapshot_lines=3, recording=None))
    for number in range(12):
        room.say(ada, script(("send_message", {"to": "USER", "payload": number})))
        room.run(room.runtime.acknowledge(room.runtime.view().user[0].message_id))
    applied = room.agent(USER).applied
    room.kill()
    for name in room.host.files.listdir("user"):
        if name != "events.jsonl":
            room.host.files.unlink(f"user/{name}")

    runtime = room.open(start=False)

    # The outbox of Ada's last line was dispatched again before that.
    last = room.agent(USER).history.seq
    assert runtime.report.missing == {USER_SESSION: ((last + 1, applied),)}


@pytest.mark.parametrize("framing", list(Framing))
def test_a_torn_end_of_a_log_is_cut_and_counted(framing: Framing) -> None:
    room = Room(Options(framing=framing))
    room.put_session(ONE, created(ADA, "Ada"))
    torn = encode_line(Line(3, NOW, ONE, "turn.start", {}), "")[:30]
    room.write(log_of(ONE), room.read(log_of(ONE)) + torn)

    recovered(room)

    assert room.runtime.report.torn_bytes == 30
    assert room.runtime.report.lines == 2
    assert room.events(ONE) == ["session.created", "agent.created"]


def test_damage_in_the_middle_of_a_log_affects_its_session_only_and_is_reported(room: Room) -> None:
    lines = [*created(ADA, "Ada"), enqueued("m1", "USER", ADA), enqueued("m2", "USER", ADA)]
    room.put_session(ONE, lines)
    room.put_session(TWO, created(BOB, "Bob"))
    content = room.read(log_of(ONE))
    at = content.index(b'"m1"')
    room.write(log_of(ONE), content[:at] + b"?" + content[at + 1 :])

    recovered(room)

    report = room.runtime.report
    (damage,) = report.damaged
    assert (damage.path, damage.tail) == (log_of(ONE), False)
    assert room.read(damage.quarantine).count(b"?") == 1
    assert report.missing == {ONE: ((3, 3),)}
    assert room.named("Ada").pending == ("m2",)
    assert room.named("Bob").alive
    assert report.sessions == 2


def test_many_logs_are_opened_whatever_their_number(room: Room) -> None:
    for number in range(1, 21):
        room.put_session(f"{number:032x}", created(f"{number:032d}", f"agent {number}"))

    recovered(room)

    assert room.runtime.report.sessions == 20
    assert [agent.name for agent in room.runtime.view().agents] == [
        f"agent {number}" for number in range(1, 21)
    ]


def test_a_log_of_a_newer_format_is_left_alone_and_the_others_are_served(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.put_session(TWO, created(BOB, "Bob"))
    newer = seal({"v": 2}) + b"\n"
    room.write(log_of(ONE), newer)

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_NEWER)]
    assert room.read(log_of(ONE)) == newer
    assert [agent.name for agent in room.runtime.view().agents] == ["Bob"]


def test_a_log_that_the_disk_cannot_read_is_left_to_the_next_boot(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.put_session(TWO, created(BOB, "Bob"))
    room.files.fail("pread", log_of(ONE), errno.EIO)

    recovered(room)
    assert problems(room) == [(ONE, Problem.FAILED)]
    room.reopen()

    assert room.runtime.report.problems == []
    assert room.named("Ada").alive


def test_a_session_whose_directory_cannot_be_tidied_is_left_to_the_next_boot(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.files.fail("sync_dir", f"agents/{ONE}", errno.EIO)

    recovered(room)

    assert problems(room) == [(ONE, Problem.FAILED)]
    assert room.runtime.view().agents == ()
    assert room.exists(log_of(ONE))


def test_a_log_of_the_operator_that_cannot_be_read_stops_the_boot_and_frees_the_lock(
    room: Room,
) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.files.fail("fsync", "user/events.jsonl", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        recovered(room)

    assert recovered(room).report.sessions == 1


def test_events_that_nobody_knows_do_not_hinder_anybody(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), ("tool.call", {"name": "sing"})])

    assert recovered(room).report.unknown_lines == 1

    assert room.agent(ADA).history.ignored == 1
    assert room.named("Ada").alive
