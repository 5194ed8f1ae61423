"""What recovery makes of a log that it finds: the states on disk are written by hand."""

from __future__ import annotations

import errno

import pytest

from system.errors import StorageFull
from system.storage.framing import Framing
from system.storage.log_recovery import classified
from system.storage.log_report import PendingVerdict
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    DIRECTORY,
    PATH,
    PENDING,
    SESSION,
    announced,
    both_framings,
    content,
    encoded,
    opened,
    texts,
)

MIDDLE = encoded(2, "b").replace(b"said", b"sard")


@pytest.mark.parametrize("torn", [b"", encoded(3, "c")[:50]])
def test_a_log_is_classified_without_its_torn_end(here: FaultyHost, torn: bytes) -> None:
    here.write(PATH, content("a", "b") + torn)

    text, found, _ = classified(here.files, PATH, SESSION, [0], "")

    assert text.content == content("a", "b")
    assert (text.size_bytes, found.torn_bytes) == (len(content("a", "b") + torn), len(torn))


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
def test_damaged_bytes_are_durable_aside_before_the_log_is_changed(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(PATH, content("a") + MIDDLE + encoded(3, "c"))

    opened(here, framing)

    changed = here.files.calls.index(f"replace {PATH}")
    aside = here.files.calls.index(f"replace {PATH}.quarantine.1")
    assert f"sync_dir {DIRECTORY}" in here.files.calls[aside:changed]


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

    start = here.files.calls.index(f"open-write {PATH}")
    assert here.files.calls[start : start + 3] == [
        f"open-write {PATH}", f"pwrite {PATH}", f"fsync {PATH}",
    ]  # fmt: skip
    two_lines = encoded(2, "b") + encoded(3, "c")
    assert here.files.written == [(PATH, len(content("a")), two_lines)]
    assert here.read(PATH) == content("a", "b", "c")


@both_framings
def test_a_full_disk_during_recovery_is_reported_and_loses_nothing(
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
    here.files.transfer_less("pread", "events.jsonl", 100)

    assert texts(opened(here, framing)) == ["a", "b", "c"]


@both_framings
def test_a_read_error_changes_nothing(here: FaultyHost, framing: Framing) -> None:
    here.write(PATH, content("a", "b"))
    here.files.fail("pread", "events.jsonl", errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        opened(here, framing)

    assert here.read(PATH) == content("a", "b")


def test_a_pending_entry_is_removed_only_when_the_log_is_durable(here: FaultyHost) -> None:
    here.write(PATH, content("a", "b"))
    here.write(PENDING, announced(encoded(2, "b")))

    log = opened(here, Framing.PENDING)

    assert log.report.pending is PendingVerdict.STALE
    removed = here.files.calls.index(f"unlink {PENDING}")
    assert here.files.calls.index(f"fsync {PATH}") < removed
    assert here.files.calls.index(f"sync_dir {DIRECTORY}") < removed


def test_an_entry_ahead_of_the_log_is_removed_when_its_copy_is_durable(here: FaultyHost) -> None:
    entry = announced(encoded(4, "d"))
    here.write(PATH, content("a"))
    here.write(PENDING, entry)

    log = opened(here, Framing.PENDING)

    copy = f"{PENDING}.quarantine.1"
    assert log.report.pending is PendingVerdict.AHEAD
    assert (here.read(copy), here.names(DIRECTORY)) == (
        entry, ["events.jsonl", "events.pending.quarantine.1"],
    )  # fmt: skip
    calls = here.files.calls
    temporary = next(call.split()[1] for call in calls if call.startswith("open-create"))
    steps = [f"fsync {temporary}", f"replace {copy}", f"sync_dir {DIRECTORY}", f"unlink {PENDING}"]
    assert [call for call in calls if call in steps][-5:] == [*steps, f"sync_dir {DIRECTORY}"]


@pytest.mark.parametrize(
    ("call", "ending", "nth"),
    [("fsync", ".tmp.00000001", 1), ("replace", ".quarantine.1", 1), ("sync_dir", SESSION, 2)],
)
def test_an_entry_ahead_of_the_log_stays_if_its_copy_is_not_durable(
    here: FaultyHost, call: str, ending: str, nth: int
) -> None:
    entry = announced(encoded(4, "d"))
    here.write(PATH, content("a"))
    here.write(PENDING, entry)
    here.files.fail(call, ending, errno.EIO, nth)

    with pytest.raises(OSError, match="Input/output error"):
        opened(here, Framing.PENDING)

    assert here.read(PENDING) == entry
    assert opened(here, Framing.PENDING).report.pending is PendingVerdict.AHEAD
    assert here.names(DIRECTORY) == ["events.jsonl", "events.pending.quarantine.1"]


@both_framings
def test_everything_that_two_barriers_have_not_covered_is_written_again(
    here: FaultyHost, framing: Framing
) -> None:
    group = encoded(2, "b") + encoded(3, "c", 1)
    unsynced = encoded(4, "d") + encoded(5, "e", 3)
    here.write(PATH, content("a") + group + unsynced)

    opened(here, framing)

    assert here.files.written == [(PATH, len(content("a")), group + unsynced)]
