"""Segments of an event log: a new one begins with a snapshot, and an old one never changes."""

from __future__ import annotations

import errno

import pytest

from system.errors import LineTooLarge, LogStopped, NewerFormat, StorageFull
from system.storage.codec import seal, unseal
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.line import LARGEST_BYTES, Line, encode_line
from system.storage.segments import read_lines, segment_path, segments_in
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    DIRECTORY,
    NOW,
    PATH,
    SESSION,
    both_framings,
    encoded,
    opened,
    said,
    say,
)

FIRST, SECOND = f"{DIRECTORY}/events.1.jsonl", f"{DIRECTORY}/events.2.jsonl"


def texts(log: EventLog) -> list[object]:
    return [line.data["text"] for line in log.recovered]


def long(here: FaultyHost, framing: Framing = Framing.FRAMED) -> EventLog:
    """A log with two snapshots: lines 1 and 2, 3 to 5, 6 and 7."""
    log = opened(here, framing)
    say(log, "a", "b")
    log.begin_segment({"text": "ab"})
    say(log, "c", "d")
    log.begin_segment({"text": "abcd"})
    say(log, "e")
    return log


def damage(here: FaultyHost, path: str) -> None:
    """Damage the first line of a file."""
    content = here.read(path)
    here.host.files.unlink(path)
    here.write(path, content.replace(b"snapshot", b"snapsh0t", 1))


@both_framings
def test_only_the_newest_segment_is_read_again(here: FaultyHost, framing: Framing) -> None:
    long(here, framing).close()

    again = opened(here, framing)

    assert (texts(again), again.last_seq, again.number) == (["abcd", "e"], 7, 2)
    assert again.report.lost_nothing
    assert not again.report.has_fallen_back
    say(again, "f")
    assert texts(opened(here, framing)) == ["abcd", "e", "f"]


@both_framings
def test_lines_without_a_barrier_are_durable_before_a_snapshot_of_them(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    log.append_unsynced(said("a", "b"))

    line = log.begin_segment({"text": "ab"})

    assert (line.seq, line.durable, log.is_durable) == (3, None, True)
    assert [each.data["text"] for each in log.earlier_lines()] == ["a", "b"]


def test_all_segments_together_have_every_line_once(here: FaultyHost) -> None:
    long(here).close()

    lines = list(read_lines(here.host.files, PATH, SESSION))

    assert [line.seq for line in lines] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(("before_ts", "removed"), [("", 0), (NOW, 1), ("9", 1)])
def test_old_segments_are_removed_and_the_last_two_kept(
    here: FaultyHost, before_ts: str, removed: int
) -> None:
    log = long(here)

    assert log.remove_old_segments(before_ts) == removed
    assert log.remove_old_segments(before_ts) == 0

    assert segments_in(here.host.files.listdir(DIRECTORY), PATH) == [0, 1, 2][removed:]


def test_a_damaged_segment_is_not_removed_nor_any_beside_it(here: FaultyHost) -> None:
    log = long(here)
    log.begin_segment({"text": "abcde"})
    damage(here, FIRST)

    assert log.remove_old_segments(NOW) == 0


def test_a_damaged_snapshot_is_put_aside_and_the_segment_before_it_read(here: FaultyHost) -> None:
    long(here).close()
    damage(here, SECOND)

    again = opened(here)

    assert texts(again) == ["ab", "c", "d", "e"]
    assert again.report.has_fallen_back
    assert again.report.missing == ((6, 6),)
    (damaged,) = again.report.damaged
    assert (damaged.path, damaged.offset) == (SECOND, 0)
    assert b"snapsh0t" in here.read(damaged.quarantine)
    again.close()

    after = opened(here)
    assert (texts(after), after.report.damaged) == (["ab", "c", "d", "e"], ())
    assert not after.report.has_fallen_back


def test_a_damaged_snapshot_behind_which_nothing_follows_loses_nothing_else(
    here: FaultyHost,
) -> None:
    log = opened(here)
    say(log, "a", "b")
    log.begin_segment({"text": "ab"})
    log.close()
    damage(here, FIRST)

    again = opened(here)

    assert (texts(again), again.last_seq) == (["a", "b"], 2)
    assert again.report.has_fallen_back
    say(again, "c")
    assert texts(opened(here)) == ["a", "b", "c"]


def test_a_line_that_a_repair_has_copied_is_read_once(here: FaultyHost) -> None:
    long(here).close()
    damage(here, SECOND)
    log = opened(here)
    log.begin_segment({"text": "all"})

    assert [line.seq for line in log.earlier_lines()] == [1, 2, 3, 4, 5, 7]


def test_two_damaged_snapshots_lead_back_to_the_first_segment(here: FaultyHost) -> None:
    long(here).close()
    damage(here, FIRST)
    damage(here, SECOND)

    again = opened(here)

    assert texts(again) == ["a", "b", "c", "d", "e"]
    assert [damaged.path for damaged in again.report.damaged] == [FIRST, SECOND]


def test_a_snapshot_that_the_disk_refuses_leaves_the_log_as_it_was(here: FaultyHost) -> None:
    log = opened(here)
    say(log, "a")
    here.files.fail("replace", FIRST, errno.ENOSPC)

    with pytest.raises(StorageFull):
        log.begin_segment({"text": "a"})

    say(log, "b")
    log.close()
    assert here.names(DIRECTORY) == ["events.jsonl"]
    assert texts(opened(here)) == ["a", "b"]


def test_a_snapshot_that_is_no_line_leaves_the_log_as_it_was(here: FaultyHost) -> None:
    log = opened(here)
    say(log, "a")

    with pytest.raises(LineTooLarge):
        log.begin_segment({"text": "x" * LARGEST_BYTES})

    say(log, "b")
    assert (log.last_seq, here.names(DIRECTORY)) == (2, ["events.jsonl"])


def test_a_segment_whose_name_may_not_be_durable_stops_the_log(here: FaultyHost) -> None:
    log = opened(here)
    say(log, "a")
    here.files.fail("sync_dir", DIRECTORY, errno.EIO)

    with pytest.raises(LogStopped, match="the barrier of a new segment failed"):
        log.begin_segment({"text": "a"})

    with pytest.raises(LogStopped):
        say(log, "b")
    log.close()
    assert texts(opened(here)) == ["a"]
    assert opened(here).number == 1


def test_a_segment_whose_beginning_was_interrupted_stops_the_log(
    here: FaultyHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(here)
    say(log, "a")

    def interrupted(path: str) -> None:
        raise KeyboardInterrupt(path)

    monkeypatch.setattr(here.files, "sync_dir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.begin_segment({"text": "a"})

    with pytest.raises(LogStopped, match="the beginning of a segment was interrupted"):
        say(log, "b")


def test_a_segment_of_a_newer_version_is_refused_and_unchanged(here: FaultyHost) -> None:
    long(here).close()
    newer = encode_line(Line(6, NOW, SESSION, "log.snapshot", {}), SECOND)

    content = seal({**unseal(newer[:-1]), "v": 2}) + b"\n"
    here.host.files.unlink(SECOND)
    here.write(SECOND, content)

    with pytest.raises(NewerFormat, match="v=2"):
        opened(here)

    assert here.read(SECOND) == content


def test_the_first_snapshot_counts_all_lines_of_a_log_that_is_opened_again(
    here: FaultyHost,
) -> None:
    log = opened(here)
    say(log, "a", "b", "c")
    log.close()

    again = opened(here)

    assert (again.is_snapshot_due(3), again.is_snapshot_due(2)) == (False, True)


def test_a_snapshot_is_due_by_lines_and_by_bytes(here: FaultyHost) -> None:
    log = opened(here)
    say(log, "a", "b")
    assert (log.is_snapshot_due(2), log.is_snapshot_due(1)) == (False, True)

    log.begin_segment({"text": "x" * 200})
    say(log, "c", "d")
    assert not log.is_snapshot_due(1)
    log.close()
    again = opened(here)
    say(again, *"efghijkl")

    assert (again.is_snapshot_due(10), again.is_snapshot_due(9)) == (False, True)


def test_names_of_segments() -> None:
    names = ["events.10.jsonl", "events.2.jsonl", "events.jsonl", "events.01.jsonl", "session.json"]

    assert segments_in([*names, "events.3.jsonl.tmp.00c0ffee"], PATH) == [0, 2, 10]
    assert segment_path(PATH, 0) == PATH
    assert segment_path(PATH, 2) == SECOND


def test_a_first_segment_of_an_older_boot_is_the_whole_log(here: FaultyHost) -> None:
    here.write(PATH, encoded(1, "a") + encoded(2, "b"))

    log = opened(here)

    assert (texts(log), log.number, list(log.earlier_lines())) == (["a", "b"], 0, [])
