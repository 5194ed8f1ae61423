"""What recovery makes of lines that shared a barrier, or had none yet."""

from __future__ import annotations

import pytest

from system.storage.framing import Framing
from system.storage.log_report import PendingVerdict
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    DIRECTORY,
    PATH,
    PENDING,
    announced,
    content,
    encoded,
    opened,
    say,
    texts,
)

both_framings = pytest.mark.parametrize("framing", Framing)


@both_framings
def test_a_later_line_of_a_group_is_not_kept_without_an_earlier_one(
    here: FaultyHost, framing: Framing
) -> None:
    lost, later = bytes(len(encoded(2, "b"))), encoded(3, "c", 1)
    here.write(PATH, content("a") + lost + later)

    log = opened(here, framing)
    say(log, "d")

    assert here.read(PATH) == content("a", "d")
    assert here.read(f"{PATH}.quarantine.1") == lost + later
    assert [damage.tail for damage in log.report.damaged] == [True]
    assert log.report.missing == ()
    assert [line.seq for line in log.recovered] == [1]


@both_framings
def test_everything_that_two_barriers_have_not_covered_is_written_again(
    here: FaultyHost, framing: Framing
) -> None:
    group = encoded(2, "b") + encoded(3, "c", 1)
    notes = encoded(4, "d") + encoded(5, "e", 3)
    here.write(PATH, content("a") + group + notes)

    opened(here, framing)

    assert here.files.written == [(PATH, len(content("a")), group + notes)]


def test_a_pending_entry_is_appended_as_far_as_the_log_does_not_have_it(here: FaultyHost) -> None:
    entry = [encoded(2, "b"), encoded(3, "c", 1), encoded(4, "d", 1)]
    for known in range(3):
        here.write(PATH, content("a") + b"".join(entry[:known]))
        here.write(PENDING, announced(*entry))

        log = opened(here, Framing.PENDING)

        assert here.read(PATH) == content("a") + b"".join(entry)
        assert (log.report.pending, log.report.lines) == (PendingVerdict.REPLAYED, 4)
        assert [line.seq for line in log.recovered] == [1, 2, 3, 4]
        assert log.append("said", {"text": "e"}).seq == 5
        log.close()


def test_a_pending_entry_replaces_a_group_that_lost_a_line(here: FaultyHost) -> None:
    entry = [encoded(2, "b"), encoded(3, "c", 1), encoded(4, "d", 1)]
    here.write(PATH, content("a") + entry[0] + bytes(len(entry[1])) + entry[2])
    here.write(PENDING, announced(*entry))

    log = opened(here, Framing.PENDING)

    assert here.read(PATH) == content("a") + b"".join(entry)
    assert log.report.lost_nothing
    assert here.names(DIRECTORY) == ["events.jsonl"]


@pytest.mark.parametrize(
    "torn",
    [
        encoded(2, "b") + encoded(3, "c", 1),
        encoded(2, "b") + bytes(len(encoded(3, "c", 1))) + b"\n\n",
        announced(encoded(2, "b"), encoded(4, "d", 1)),
        announced(),
        announced(b"\n"),
    ],
    ids=["without its end", "with zeros", "with a gap", "empty", "blank"],
)
def test_nothing_of_a_group_is_replayed_from_a_pending_entry_that_is_not_whole(
    here: FaultyHost, torn: bytes
) -> None:
    here.write(PATH, content("a"))
    here.write(PENDING, torn)

    log = opened(here, Framing.PENDING)

    assert (texts(log), log.report.pending) == (["a"], PendingVerdict.TORN)
    assert here.names(DIRECTORY) == ["events.jsonl"]
