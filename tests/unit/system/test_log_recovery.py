"""What recovery makes of a log that it finds: the states on disk are written by hand."""

from __future__ import annotations

import errno

import pytest

from system.errors import NewerFormat, StorageFull
from system.storage.codec import seal
from system.storage.framing import Framing
from system.storage.log_report import Damage, PendingVerdict
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    DIRECTORY,
    PATH,
    PENDING,
    SESSION,
    announced,
    content,
    encoded,
    opened,
    say,
    texts,
)

both_framings = pytest.mark.parametrize("framing", Framing)
MIDDLE = encoded(2, "b").replace(b"said", b"sard")


@both_framings
def test_a_torn_end_is_cut_and_the_cut_is_durable_before_anything_is_appended(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(PATH, content("a", "b") + encoded(3, "c")[:50])

    log = opened(here, framing)

    assert here.read(PATH) == content("a", "b")
    assert (log.report.torn_bytes, log.report.damaged, log.report.lost_nothing) == (50, (), True)
    size = len(content("a", "b"))
    cut = here.files.calls.index(f"truncate {PATH} {size}")
    assert here.files.calls[cut + 1] == f"fsync {PATH}"
    assert f"open-append {PATH}" not in here.files.calls


@both_framings
def test_a_line_end_that_is_missing_is_put_back(here: FaultyHost, framing: Framing) -> None:
    here.write(PATH, content("a", "b")[:-1])

    log = opened(here, framing)
    say(log, "c")

    assert here.read(PATH) == content("a", "b", "c")
    assert log.report.lost_nothing


@both_framings
def test_damage_in_the_middle_is_put_aside_and_the_good_lines_stay(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(PATH, content("a") + MIDDLE + encoded(3, "c"))

    log = opened(here, framing)
    say(log, "d")

    assert texts(log) == ["a", "c", "d"]
    assert here.read(PATH) == encoded(1, "a") + encoded(3, "c") + encoded(4, "d")
    assert here.read(f"{PATH}.quarantine.1") == MIDDLE
    (damage,) = log.report.damaged
    assert damage == Damage(
        PATH, len(content("a")), len(MIDDLE), damage.reason, False, f"{PATH}.quarantine.1"
    )
    assert damage.reason.startswith("its crc is ")
    assert (log.report.missing, log.report.lost_nothing) == (((2, 2),), False)


@both_framings
def test_damaged_bytes_are_durable_aside_before_the_log_is_changed(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(PATH, content("a") + MIDDLE + encoded(3, "c"))

    opened(here, framing)

    changed = here.files.calls.index(f"replace {PATH}")
    aside = here.files.calls.index(f"replace {PATH}.quarantine.1")
    assert f"sync_dir {DIRECTORY}" in here.files.calls[aside:changed]


@both_framings
def test_a_gap_is_told_at_every_opening(here: FaultyHost, framing: Framing) -> None:
    here.write(PATH, encoded(1, "a") + encoded(5, "e"))

    for _ in range(2):
        log = opened(here, framing)
        assert (log.report.missing, log.report.damaged) == (((2, 4),), ())
        log.close()


@both_framings
def test_a_damaged_end_is_put_aside_and_cut(here: FaultyHost, framing: Framing) -> None:
    tail = encoded(3, "c")[:60] + bytes(200)
    here.write(PATH, content("a", "b") + tail)

    log = opened(here, framing)

    assert here.read(PATH) == content("a", "b")
    assert here.read(f"{PATH}.quarantine.1") == tail
    assert [damage.tail for damage in log.report.damaged] == [True]
    assert not log.report.lost_nothing


@both_framings
@pytest.mark.parametrize(
    "found",
    [
        b"",
        content("a", "b", "c"),
        content("a", "b") + encoded(3, "c")[:50],
        content("a", "b") + bytes(700),
        content("a") + MIDDLE + encoded(3, "c") + bytes(300),
        bytes(5000),
    ],
)
def test_recovery_of_a_recovered_log_changes_nothing(
    here: FaultyHost, framing: Framing, found: bytes
) -> None:
    here.write(PATH, found)
    here.write(f"{PATH}.tmp.01234567", b"left by a crash")
    first = opened(here, framing)
    after = {name: here.read(f"{DIRECTORY}/{name}") for name in here.names(DIRECTORY)}
    first.close()

    second = opened(here, framing)

    assert {name: here.read(f"{DIRECTORY}/{name}") for name in here.names(DIRECTORY)} == after
    assert (second.report.damaged, second.report.torn_bytes, second.report.swept) == ((), 0, ())
    assert (second.report.lines, second.last_seq) == (first.report.lines, first.last_seq)


@both_framings
def test_bytes_that_an_interrupted_recovery_put_aside_are_not_kept_twice(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(PATH, content("a") + bytes(700))
    here.files.fail("truncate", "events.jsonl", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        opened(here, framing)

    log = opened(here, framing)

    assert here.names(DIRECTORY) == ["events.jsonl", "events.jsonl.quarantine.1"]
    assert [damage.quarantine for damage in log.report.damaged] == [f"{PATH}.quarantine.1"]


@both_framings
def test_the_end_is_written_again_before_its_barrier(here: FaultyHost, framing: Framing) -> None:
    """A kernel that failed to write it has marked it clean, and would not write it (fsyncgate)."""
    here.write(PATH, content("a", "b", "c"))

    opened(here, framing)

    size = len(content("a", "b", "c"))
    start = here.files.calls.index(f"open-write {PATH}")
    assert here.files.calls[start : start + 5] == [
        f"open-write {PATH}",
        f"pwrite {PATH}",
        f"truncate {PATH} {size + 1}",
        f"truncate {PATH} {size}",
        f"fsync {PATH}",
    ]
    two_lines = encoded(2, "b") + encoded(3, "c")
    assert here.files.written == [(PATH, len(content("a")), two_lines)]
    assert here.read(PATH) == content("a", "b", "c")


@both_framings
def test_temporary_files_of_the_log_are_swept_and_no_others(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(PATH, b"")
    for name in ["events.jsonl.tmp.0000000a", "session.json.tmp.0000000b"]:
        here.write(f"{DIRECTORY}/{name}", b"")

    log = opened(here, framing)

    assert log.report.swept == (f"{PATH}.tmp.0000000a",)
    assert here.names(DIRECTORY) == ["events.jsonl", "session.json.tmp.0000000b"]


@both_framings
def test_a_newer_format_is_left_as_it_is(here: FaultyHost, framing: Framing) -> None:
    found = content("a") + bytes(300) + b"\n" + seal({"v": 2, "seq": 2}) + b"\n" + bytes(9)
    here.write(PATH, found)

    with pytest.raises(NewerFormat, match=PATH):
        opened(here, framing)

    assert here.read(PATH) == found
    assert here.names(DIRECTORY) == ["events.jsonl"]


@both_framings
def test_a_full_disk_during_recovery_is_told_and_loses_nothing(
    here: FaultyHost, framing: Framing
) -> None:
    found = content("a") + bytes(700)
    here.write(PATH, found)
    here.files.fail("pwrite", ".tmp.00000001", errno.ENOSPC)

    with pytest.raises(StorageFull):
        opened(here, framing)

    assert here.read(PATH) == found


@both_framings
def test_a_short_read_is_not_the_end_of_the_log(here: FaultyHost, framing: Framing) -> None:
    here.write(PATH, content("a", "b", "c"))
    here.files.shorten("pread", "events.jsonl", 100)

    assert texts(opened(here, framing)) == ["a", "b", "c"]


@both_framings
def test_a_read_error_changes_nothing(here: FaultyHost, framing: Framing) -> None:
    here.write(PATH, content("a", "b"))
    here.files.fail("pread", "events.jsonl", errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        opened(here, framing)

    assert here.read(PATH) == content("a", "b")


def test_a_pending_entry_that_is_next_is_replayed_once(here: FaultyHost) -> None:
    here.write(PATH, content("a"))
    here.write(PENDING, announced(encoded(2, "b")))

    log = opened(here, Framing.PENDING)

    assert (log.report.pending, log.report.lines, log.last_seq) == (PendingVerdict.REPLAYED, 2, 2)
    assert here.read(PATH) == content("a", "b")
    assert here.names(DIRECTORY) == ["events.jsonl"]
    log.close()
    assert opened(here, Framing.PENDING).report.pending is PendingVerdict.ABSENT


@pytest.mark.parametrize(
    "tail", [encoded(2, "b")[:40], bytes(300), b"stale 7\n" * 30, encoded(2, "b")[:-1]]
)
def test_what_was_appended_of_a_pending_entry_is_cut_before_it_is_replayed(
    here: FaultyHost, tail: bytes
) -> None:
    here.write(PATH, content("a") + tail)
    here.write(PENDING, announced(encoded(2, "b")))

    log = opened(here, Framing.PENDING)
    say(log, "c")

    assert here.read(PATH) == content("a", "b", "c")
    assert log.report.lost_nothing
    assert here.names(DIRECTORY) == ["events.jsonl"]


def test_a_pending_entry_is_removed_only_when_the_log_is_durable(here: FaultyHost) -> None:
    here.write(PATH, content("a", "b"))
    here.write(PENDING, announced(encoded(2, "b")))

    log = opened(here, Framing.PENDING)

    assert log.report.pending is PendingVerdict.STALE
    removed = here.files.calls.index(f"unlink {PENDING}")
    assert here.files.calls.index(f"fsync {PATH}") < removed
    assert here.files.calls.index(f"sync_dir {DIRECTORY}") < removed


def test_a_pending_entry_is_replayed_behind_damage_in_the_middle(here: FaultyHost) -> None:
    here.write(PATH, content("a") + MIDDLE + encoded(3, "c"))
    here.write(PENDING, announced(encoded(4, "d")))

    log = opened(here, Framing.PENDING)

    assert texts(log) == ["a", "c", "d"]
    assert (log.report.pending, log.report.missing) == (PendingVerdict.REPLAYED, ((2, 2),))


def test_a_pending_entry_ahead_of_the_log_is_evidence_of_a_loss(here: FaultyHost) -> None:
    here.write(PATH, content("a"))
    here.write(PENDING, announced(encoded(4, "d")))

    log = opened(here, Framing.PENDING)

    assert texts(log) == ["a"]
    assert (log.report.pending, log.report.missing) == (PendingVerdict.AHEAD, ((2, 3),))
    assert here.read(f"{PENDING}.quarantine.1") == announced(encoded(4, "d"))
    assert log.report.damaged == (
        Damage(
            PENDING,
            0,
            len(announced(encoded(4, "d"))),
            "the log ends at seq=1, so this entry cannot be its next line",
            True,
            f"{PENDING}.quarantine.1",
        ),
    )


def test_a_pending_entry_of_another_session_is_not_replayed(here: FaultyHost) -> None:
    here.write(PATH, content("a"))
    foreign = encoded(2, "b").replace(SESSION.encode(), b"f" * 32)
    here.write(PENDING, announced(foreign))

    log = opened(here, Framing.PENDING)

    assert (texts(log), log.report.pending) == (["a"], PendingVerdict.TORN)


def test_a_pending_entry_is_replayed_when_the_framing_has_changed(here: FaultyHost) -> None:
    here.write(PENDING, announced(encoded(1, "a")))

    log = opened(here, Framing.FRAMED)

    assert (texts(log), log.report.pending) == (["a"], PendingVerdict.REPLAYED)
    assert here.names(DIRECTORY) == ["events.jsonl"]
