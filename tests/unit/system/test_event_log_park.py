"""A log that rests holds no descriptor, and nothing that a barrier would have had to report."""

from __future__ import annotations

from errno import EIO

import pytest

from system.errors import LogStopped
from system.storage.framing import Framing
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    PATH,
    PENDING,
    announced,
    both_framings,
    encoded,
    opened,
    said,
    say,
    texts,
)


@both_framings
def test_a_log_that_was_only_recovered_and_read_holds_no_descriptor(
    here: FaultyHost, framing: Framing
) -> None:
    say(opened(here, framing), "a")
    here.files.calls.clear()

    log = opened(here, framing)

    assert texts(log) == ["a"]
    ours = [call for call in here.files.calls if call.endswith(PATH) and "pread" not in call]
    assert ours[-2:] == [f"open-read {PATH}", f"close {PATH}"]
    assert f"open-append {PATH}" not in ours


@both_framings
def test_park_syncs_unsynced_lines_before_it_closes(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    log.append_unsynced(said("a"))
    here.files.calls.clear()

    log.park()

    assert here.files.calls == [f"fdatasync {PATH}", f"close {PATH}"]


@both_framings
def test_park_after_an_append_has_no_barrier_and_a_second_one_does_nothing(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a")
    here.files.calls.clear()

    log.park()
    log.park()

    assert here.files.calls == [f"close {PATH}"]


def test_a_log_that_has_rested_goes_on_where_it_was(here: FaultyHost) -> None:
    log = opened(here)
    log.append_unsynced(said("a"))
    log.park()
    here.files.calls.clear()

    line = log.append("said", {"text": "b"})

    assert here.files.calls == [f"open-append {PATH}", f"append {PATH}", f"fdatasync {PATH}"]
    assert (line.seq, line.durable) == (2, None)
    assert texts(log) == ["a", "b"]


def test_lines_that_park_made_durable_are_not_announced_again(here: FaultyHost) -> None:
    log = opened(here, Framing.PENDING)
    log.append_unsynced(said("a"))
    log.park()

    say(log, "b")

    written = [data for path, _offset, data in here.files.written if path == PENDING]
    assert written == [announced(encoded(2, "b"))]


@both_framings
def test_a_barrier_that_fails_in_park_stops_the_log(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    say(log, "a")
    log.append_unsynced(said("b"))
    here.files.fail("fdatasync", PATH, EIO)

    for _ in range(2):
        with pytest.raises(LogStopped, match="its barrier failed"):
            log.park()
    with pytest.raises(LogStopped):
        say(log, "c")

    assert texts(log) == ["a"]


@both_framings
def test_what_closing_says_when_all_is_durable_does_not_matter(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a")
    here.files.fail("close", PATH, EIO)

    log.park()
    say(log, "b")

    assert texts(log) == ["a", "b"]


@both_framings
def test_a_log_that_cannot_be_opened_for_writing_leaves_nothing_and_stays_usable(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    here.files.fail("open-append", PATH, EIO)

    with pytest.raises(OSError, match="Input/output error"):
        say(log, "a")
    say(log, "b")

    assert texts(log) == ["b"]
    assert PENDING.rpartition("/")[2] not in here.names(PATH.rpartition("/")[0])


@both_framings
def test_a_closed_log_cannot_be_parked(here: FaultyHost, framing: Framing) -> None:
    log = opened(here, framing)
    log.close()

    with pytest.raises(LogStopped, match="it is closed"):
        log.park()
