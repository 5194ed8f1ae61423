"""The guarantees of a running event log, in both framings."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from system.errors import LineTooLarge, LogDamaged, LogStopped, NotPlainJson, StorageFull
from system.ports import File, OpenMode
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
    say,
    texts,
)


@both_framings
def test_lines_come_back_after_reopening(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    say(log, "a", "b")
    log.close()

    again = opened(here, framing)
    say(again, "c")

    assert list(again.lines()) == [
        Line(seq, NOW, SESSION, "said", {"text": text}) for seq, text in enumerate("abc", 1)
    ]
    assert (again.report.lines, again.last_seq, again.report.lost_nothing) == (2, 3, True)


@both_framings
def test_a_line_behind_lost_ones_is_kept_and_the_lost_ones_are_reported(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a", "b")
    log.skip_to(5)
    say(log, "c")
    log.close()

    again = opened(here, framing)

    assert texts(again) == ["a", "b", "c"]
    assert (again.last_seq, again.report.missing) == (6, ((3, 5),))


@both_framings
def test_both_framings_write_the_same_file(here: FaultyHost, framing: Framing) -> None:
    say(opened(here, framing), "a", "ü")

    assert here.read(PATH) == content("a", "ü")
    assert here.names(DIRECTORY) == ["events.jsonl"]


@both_framings
def test_an_append_returns_its_line(here: FaultyHost, framing: Framing) -> None:
    line = opened(here, framing).append("said", {"text": "a"})

    assert line == Line(1, NOW, SESSION, "said", {"text": "a"})


def test_framed_appends_with_one_write_and_one_barrier(here: FaultyHost) -> None:
    log = opened(here)
    here.files.calls.clear()

    say(log, "a")

    assert here.files.calls == [f"open-append {PATH}", f"append {PATH}", f"fdatasync {PATH}"]


def test_pending_makes_the_line_durable_beside_the_log_first(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    here.files.calls.clear()

    say(log, "a")

    assert here.files.calls == [
        f"open-create {PENDING}",
        f"pwrite {PENDING}",
        f"fsync {PENDING}",
        f"sync_dir {DIRECTORY}",
        f"close {PENDING}",
        f"open-append {PATH}",
        f"append {PATH}",
        f"fdatasync {PATH}",
        f"unlink {PENDING}",
    ]


@both_framings
def test_a_new_log_is_durable_with_its_way_before_the_first_append(
    here: FaultyHost, framing: Framing
) -> None:
    opened(here, framing)

    assert here.files.calls == [
        f"listdir {DIRECTORY}",
        "mkdir agents",
        "sync_dir ",
        f"mkdir {DIRECTORY}",
        "sync_dir agents",
        f"open-create {PATH}",
        f"close {PATH}",
        f"open-read {PATH}",
        f"close {PATH}",
        f"open-write {PATH}",
        f"fsync {PATH}",
        f"close {PATH}",
        f"sync_dir {DIRECTORY}",
    ]


@both_framings
def test_short_writes_are_completed(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    here.files.transfer_less("append", "events.jsonl", 7)
    here.files.transfer_less("pwrite", "events.pending", 7)

    say(log, "a", "b")

    assert here.read(PATH) == content("a", "b")


@both_framings
@pytest.mark.parametrize("wrong", [{"x": b""}, {"x": float("inf")}, {"x": {1: 2}}])
def test_what_is_not_plain_json_is_refused_before_anything_is_written(
    here: FaultyHost, framing: Framing, wrong: Any
) -> None:
    log = opened(here, framing)
    here.files.calls.clear()

    with pytest.raises(NotPlainJson):
        log.append("said", wrong)
    assert here.files.calls == []

    say(log, "a")
    assert texts(log) == ["a"]


def test_a_line_that_is_too_large_is_refused_before_anything_is_written(here: FaultyHost) -> None:
    log = opened(here)

    with pytest.raises(LineTooLarge):
        log.append("said", {"text": "x" * (16 << 20)})

    assert here.read(PATH) == b""


@both_framings
def test_a_full_disk_keeps_nothing_of_the_line_and_leaves_the_log_usable(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a")
    here.files.transfer_less("append", "events.jsonl", 30)
    here.files.fail("append", "events.jsonl", errno.ENOSPC, nth=2)

    with pytest.raises(StorageFull, match="no space left") as full:
        say(log, "lost")
    assert full.value.path == PATH
    assert here.read(PATH) == content("a")
    assert here.names(DIRECTORY) == ["events.jsonl"]

    say(log, "b")
    assert texts(log) == ["a", "b"]
    log.close()
    assert texts(opened(here, framing)) == ["a", "b"]


@both_framings
def test_a_write_error_is_passed_on_and_leaves_the_log_usable(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    here.files.fail("append", "events.jsonl", errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        say(log, "lost")

    say(log, "a")
    assert texts(log) == ["a"]


@both_framings
def test_a_failed_barrier_stops_the_log_until_it_is_reopened(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a")
    here.files.fail("fdatasync", "events.jsonl", errno.EIO)

    with pytest.raises(LogStopped, match="its barrier failed"):
        say(log, "unknown")
    with pytest.raises(LogStopped, match="its barrier failed"):
        say(log, "refused")
    assert texts(log) == ["a"]
    log.close()

    again = opened(here, framing)
    say(again, "b")
    assert texts(again) in (["a", "unknown", "b"], ["a", "b"])
    assert again.report.lost_nothing


@both_framings
@pytest.mark.parametrize("call", ["truncate", "fsync"])
def test_a_partial_line_that_cannot_be_removed_stops_the_log(
    here: FaultyHost, framing: Framing, call: str
) -> None:
    log = opened(here, framing)
    here.files.transfer_less("append", "events.jsonl", 30)
    here.files.fail("append", "events.jsonl", errno.ENOSPC, nth=2)
    here.files.fail(call, "events.jsonl", errno.EIO)

    with pytest.raises(LogStopped, match="a partial line could not be removed"):
        say(log, "unknown")
    with pytest.raises(LogStopped):
        say(log, "refused")


@both_framings
def test_an_interrupted_append_stops_the_log(
    here: FaultyHost, framing: Framing, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(here, framing)
    file: File = log._file._opened()

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "fdatasync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        say(log, "unknown")

    with pytest.raises(LogStopped, match="an append was interrupted"):
        say(log, "refused")


@both_framings
def test_a_closed_log_takes_nothing(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    log.close()

    with pytest.raises(LogStopped, match="it is closed"):
        say(log, "a")


@both_framings
def test_damage_while_the_log_is_open_is_reported(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    say(log, "a", "b")
    file = here.host.files.open(PATH, OpenMode.WRITE)
    file.pwrite(b"\0", len(content("a")) + 3)

    lines = log.lines()
    assert next(lines).data == {"text": "a"}
    with pytest.raises(LogDamaged, match=f"at offset {len(content('a'))}: NUL byte at offset 3"):
        next(lines)


@both_framings
def test_damage_of_the_last_line_end_while_the_log_is_open_is_reported(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a", "b")
    file = here.host.files.open(PATH, OpenMode.WRITE)
    file.pwrite(b"x", len(content("a", "b")) - 1)

    with pytest.raises(LogDamaged, match="its last line has no line end"):
        list(log.lines())


def test_every_line_is_json_for_other_tools(here: FaultyHost) -> None:
    say(opened(here), "a\n\0é😀\u2028", "b")

    with open(here.path(PATH), encoding="ascii") as file:
        found = [json.loads(line) for line in file]
    assert [(line["seq"], line["data"]["text"]) for line in found] == [
        (1, "a\n\0é😀\u2028"), (2, "b"),
    ]  # fmt: skip


def test_the_framing_of_a_log_may_change(here: FaultyHost) -> None:
    for seq, framing in enumerate([*Framing, *Framing], 1):
        log = opened(here, framing)
        say(log, f"{seq}")
        log.close()

    assert texts(opened(here)) == ["1", "2", "3", "4"]


def test_a_log_in_the_root_needs_no_directory(here: FaultyHost) -> None:
    log = EventLog.open(here.host, "events.jsonl", SESSION, Framing.PENDING)
    say(log, "a")

    assert here.names() == ["events.jsonl"]
    assert here.files.calls[:3] == ["listdir ", "open-create events.jsonl", "close events.jsonl"]


def test_the_pending_file_of_a_failed_removal_is_replaced(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    here.files.fail("unlink", "events.pending", errno.EIO)

    say(log, "a")
    assert here.read(PENDING) == announced(encoded(1, "a"))
    say(log, "b")

    assert texts(log) == ["a", "b"]
    assert here.names(DIRECTORY) == ["events.jsonl"]


def test_a_full_disk_under_the_pending_file_leaves_the_log_usable(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    here.files.transfer_less("pwrite", "events.pending", 9)
    here.files.fail("pwrite", "events.pending", errno.ENOSPC, nth=2)

    with pytest.raises(StorageFull):
        say(log, "lost")
    assert here.names(DIRECTORY) == ["events.jsonl"]

    say(log, "a")
    assert texts(log) == ["a"]


def test_a_pending_file_that_cannot_be_made_leaves_the_log_usable(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    here.files.fail("open-create", "events.pending", errno.ENOSPC)

    with pytest.raises(StorageFull):
        say(log, "lost")

    say(log, "a")
    assert texts(log) == ["a"]


@pytest.mark.parametrize(("call", "ending"), [("fsync", "events.pending"), ("sync_dir", SESSION)])
def test_a_failed_barrier_of_the_pending_file_stops_the_log(
    here: FaultyHost, call: str, ending: str
) -> None:
    log = opened(here, Framing.PENDING)
    here.files.fail(call, ending, errno.EIO)

    with pytest.raises(LogStopped, match="the barrier of its pending entry failed"):
        say(log, "unknown")
    with pytest.raises(LogStopped):
        say(log, "refused")


def test_closing_the_pending_file_may_fail_once_it_is_durable(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    here.files.fail("close", "events.pending", errno.EIO)

    say(log, "a")

    assert texts(log) == ["a"]


def test_a_failed_append_does_not_come_back_with_its_pending_file(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    say(log, "a")
    here.files.fail("append", "events.jsonl", errno.ENOSPC)
    here.files.fail("unlink", "events.pending", errno.EIO)

    with pytest.raises(StorageFull):
        say(log, "refused")
    assert here.read(PENDING) == b"\0" + announced(encoded(2, "refused"))[1:]
    assert here.files.calls[-2:] == [f"fsync {PENDING}", f"close {PENDING}"]
    log.close()

    assert texts(opened(here, Framing.PENDING)) == ["a"]


def test_a_pending_entry_that_cannot_be_retracted_stops_the_log(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    here.files.fail("append", "events.jsonl", errno.ENOSPC)
    here.files.fail("fsync", "events.pending", errno.EIO, nth=2)

    with pytest.raises(LogStopped, match="a pending entry could not be retracted"):
        say(log, "unknown")
