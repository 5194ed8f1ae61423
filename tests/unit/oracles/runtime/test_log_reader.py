"""Reading lines from bytes, and reading snapshots again after a log has grown."""

from __future__ import annotations

import pytest

from oracles.runtime.log_reader import read_line, read_log
from oracles.runtime.root_snapshot import SnapshotReader
from system.storage.line import Line, encode_line
from tests.unit.oracles.runtime.story import hexed, sealed
from tests.unit.oracles.runtime.team import team


def line(seq: object, session_id: str = "s", **members: object) -> bytes:
    plain = {"v": 1, "seq": seq, "ts": "", "session_id": session_id, "event": "e", "data": {}}
    return sealed({**plain, **members}) + b"\n"


def test_whole_lines_are_read() -> None:
    log = read_log(line(1) + line(2) + line(3, durable=1))
    assert [(each.seq, each.durable) for each in log.lines] == [(1, 0), (2, 1), (3, 1)]
    assert log.unparsed == b""


def test_a_line_of_the_runtime_is_read() -> None:
    written = Line(1, "2026-03-01T12:00:00.000000Z", "s", "message.dead", {"reason": "é\n"})
    found = read_line(encode_line(written, "path")[:-1])
    assert not isinstance(found, str), found
    assert (found.seq, found.event, found.data) == (1, "message.dead", {"reason": "é\n"})


@pytest.mark.parametrize(
    "bad",
    [
        line(2)[:-1],
        line(2)[:-9],
        line(2).replace(b'"e"', b'"f"'),
        b"\0" * 40 + b"\n",
        b"\n",
        line(3),
        line(1),
        line(2, session_id="other"),
        line(2, v=2),
        line(2, durable=2),
        line(2, durable=-1),
        line(2, durable="0"),
        line("2"),
        line(2.0, durable=1),
        line(2).replace(b',"crc":', b',"crb":'),
        line(2, more=0),
        line(2, event=2),
        line(2, data=[]),
        sealed({"v": 1}) + b"\n",
    ],
)
def test_what_is_no_line_ends_the_log(bad: bytes) -> None:
    log = read_log(line(1) + bad + line(3))
    assert len(log.lines) == 1
    assert log.unparsed == bad + line(3)
    assert log.reason


def test_a_line_without_its_end_is_none() -> None:
    for torn in (line(2)[:-1], line(2)[:-1] + b"x"):
        assert read_log(line(1) + torn).unparsed == torn


def test_a_second_reading_keeps_what_has_not_changed() -> None:
    first = read_log(line(1) + line(2))
    assert read_log(line(1), first).lines == first.lines[:1]
    longer = read_log(line(1) + line(2) + line(3), first)
    assert longer.lines[0] is first.lines[0]
    assert len(longer.lines) == 3
    other = read_log(line(1) + line(2, event="f"), longer)
    assert [each.event for each in other.lines] == ["e", "f"]
    changed = read_log(line(1) + line(2) + line(3, event="f"), longer)
    assert [each.event for each in changed.lines] == ["e", "e", "f"]
    assert changed.lines[1] is longer.lines[1]


def test_a_snapshot_stays_as_it_is() -> None:
    story, reader = team(), SnapshotReader()
    before = reader.read(story.files())
    pending = list(before.agents[hexed("a-boss")].pending)
    story.send("m9", "boss", 1)
    after = reader.read(story.files())
    assert list(before.agents[hexed("a-boss")].pending) == pending
    assert list(after.agents[hexed("a-boss")].pending) == [*pending, "m9"]
    assert after.agents[hexed("a-idle")] is before.agents[hexed("a-idle")]


def test_a_changed_log_is_read_again() -> None:
    story, reader = team(), SnapshotReader()
    before = reader.read(story.files()).agents[hexed("a-idle")]
    story.at("idle", "message.enqueued")["payload"] = "be somebody"
    story.send("m9", "idle", 1)
    after = reader.read(story.files()).agents[hexed("a-idle")]
    assert before.enqueued["boot-idle"].payload == "be idle"
    assert after.enqueued["boot-idle"].payload == "be somebody"


def test_alternating_logs_are_cached() -> None:
    story, reader = team(), SnapshotReader()
    files = story.files()
    before = reader.read(files).agents[hexed("a-idle")]
    story.send("m9", "idle", 1)
    longer = reader.read(story.files()).agents[hexed("a-idle")]
    assert reader.read(files).agents[hexed("a-idle")] is before
    assert reader.read(story.files()).agents[hexed("a-idle")] is longer


def test_a_reminder_is_active_until_it_has_come_or_nobody_waits_for_it() -> None:
    story = team()
    assert story.snapshot().active_reminders == set()
    story.drop("boss", "message.enqueued", 4)
    assert story.snapshot().active_reminders == {"r1"}
    story.at("boss", "turn.complete", 1)["cancelled"] = ["r1"]
    assert story.snapshot().active_reminders == set()
    del story.at("boss", "turn.complete", 1)["cancelled"]
    story.terminate("boss")
    assert story.snapshot().active_reminders == set()
