"""Several lines behind one barrier, and lines without one, in both framings."""

from __future__ import annotations

import errno

import pytest

from system.errors import LineTooLarge, LogStopped, NotPlainJson, StorageFull
from system.ports import JsonObject
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.line import Line
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    DIRECTORY,
    NOW,
    PATH,
    PENDING,
    SESSION,
    announced,
    both_framings,
    content,
    encoded,
    opened,
    said,
    say,
    texts,
)


def line(seq: int, text: str, durable: int | None = None) -> Line:
    return Line(seq, NOW, SESSION, "said", {"text": text}, durable)


def write(log: EventLog, way: str, *texts_of_lines: str) -> list[Line]:
    return (log.append_unsynced if way == "note" else log.append_all)(said(*texts_of_lines))


both_ways = pytest.mark.parametrize("way", ["note", "append_all"])


def test_framed_appends_a_group_with_one_write_and_one_barrier(here: FaultyHost) -> None:
    log = opened(here)
    here.files.calls.clear()

    log.append_all(said("a", "b", "c"))

    assert here.files.calls == [f"open-append {PATH}", f"append {PATH}", f"fdatasync {PATH}"]


@both_framings
def test_a_note_is_one_write_and_no_barrier(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    here.files.calls.clear()

    log.append_unsynced(said("a", "b"))

    assert here.files.calls == [f"open-append {PATH}", f"append {PATH}"]


@both_framings
def test_lines_say_what_was_durable_when_they_were_written(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)

    written = log.append_all(said("a", "b", "c"))
    written += log.append_unsynced(said("d"))
    written += log.append_unsynced(said("e"))
    written.append(log.append("said", {"text": "f"}))
    written.append(log.append("said", {"text": "g"}))

    assert written == [
        line(1, "a"), line(2, "b", 0), line(3, "c", 0), line(4, "d"), line(5, "e", 3),
        line(6, "f", 3), line(7, "g"),
    ]  # fmt: skip
    assert [each.known_durable for each in written] == [0, 0, 0, 3, 3, 3, 6]
    assert list(log.lines()) == written
    assert log.last_seq == 7


@both_framings
def test_an_opened_log_hands_over_its_lines(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    assert log.recovered == ()
    written = [*log.append_all(said("a", "b")), *log.append_unsynced(said("c"))]
    log.close()

    again = opened(here, framing)

    assert again.recovered == tuple(written)
    assert again.append("said", {"text": "d"}) == line(4, "d")


def test_the_pending_entry_of_a_group_holds_the_notes_before_it(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    say(log, "a")
    log.append_unsynced(said("b"))
    here.files.fail("unlink", "events.pending", errno.EIO)

    log.append_all(said("c", "d"))

    assert here.read(PENDING) == announced(encoded(2, "b"), encoded(3, "c", 1), encoded(4, "d", 1))
    say(log, "e")
    assert here.files.written[-1] == (PENDING, 0, announced(encoded(5, "e")))
    assert here.names(DIRECTORY) == ["events.jsonl"]


@both_framings
@both_ways
@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"x": float("inf")}, NotPlainJson), ({"x": "y" * (16 << 20)}, LineTooLarge)],
)
def test_one_line_that_is_refused_leaves_nothing_of_its_group(
    here: FaultyHost, framing: Framing, way: str, wrong: JsonObject, error: type[Exception]
) -> None:
    log = opened(here, framing)
    events = [*said("a"), ("said", wrong)]
    here.files.calls.clear()

    with pytest.raises(error):
        (log.append_unsynced if way == "note" else log.append_all)(events)
    assert here.files.calls == []

    assert [each.seq for each in write(log, way, "a")] == [1]
    assert texts(log) == ["a"]


@both_framings
@both_ways
@pytest.mark.parametrize("taken", [0, 1, 200])
def test_a_full_disk_keeps_nothing_of_a_group_and_all_that_was_noted_before(
    here: FaultyHost, framing: Framing, way: str, taken: int
) -> None:
    log = opened(here, framing)
    log.append_unsynced(said("a"))
    if taken:
        here.files.transfer_less("append", "events.jsonl", taken)
    here.files.fail("append", "events.jsonl", errno.ENOSPC, nth=2 if taken else 1)

    with pytest.raises(StorageFull):
        write(log, way, "lost", "lost as well")
    assert here.read(PATH) == content("a")
    assert here.names(DIRECTORY) == ["events.jsonl"]

    write(log, way, "b")
    assert texts(log) == ["a", "b"]
    log.close()
    assert texts(opened(here, framing)) == ["a", "b"]


@both_framings
def test_a_failed_barrier_puts_in_doubt_what_was_noted_before(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a")
    log.append_unsynced(said("noted"))
    here.files.fail("fdatasync", "events.jsonl", errno.EIO)

    with pytest.raises(LogStopped, match="its barrier failed"):
        say(log, "unknown")
    with pytest.raises(LogStopped, match="its barrier failed"):
        log.append_unsynced(said("refused"))

    assert texts(log) == ["a"]


@both_framings
def test_a_partial_note_that_cannot_be_removed_stops_the_log(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    here.files.transfer_less("append", "events.jsonl", 30)
    here.files.fail("append", "events.jsonl", errno.ENOSPC, nth=2)
    here.files.fail("fsync", "events.jsonl", errno.EIO)

    with pytest.raises(LogStopped, match="a partial line could not be removed"):
        log.append_unsynced(said("unknown"))
    with pytest.raises(LogStopped):
        say(log, "refused")
