"""Known bugs of similar systems, which storage must not have.

Each test writes the files that the shortest schedule of the bug leaves.
"""

from __future__ import annotations

import errno

import pytest

from system.errors import LogStopped, StorageFull
from system.sessions.session import SessionRecord, SessionState, encode_record
from system.sessions.session_problem import Problem, SessionProblem
from system.sessions.session_store import SessionStore
from system.storage.framing import Framing
from system.storage.log_report import PendingVerdict
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import (
    DIRECTORY,
    PATH,
    PENDING,
    announced,
    both_framings,
    content,
    encoded,
    opened,
    say,
    texts,
)

TORN = announced(encoded(2, "torn"))


@pytest.mark.parametrize(
    "torn",
    [
        b"",
        b"{",
        TORN[:40],
        TORN[:-2],
        TORN[:-1],
        TORN[:-1] + b"\0",
        TORN[:40] + bytes(60) + TORN[100:],
    ],
)
def test_r1_a_torn_pending_entry_is_not_appended(here: FaultyHost, torn: bytes) -> None:
    here.write(PATH, content("a"))
    here.write(PENDING, torn)

    log = opened(here, Framing.PENDING)
    say(log, "X")

    assert log.report.pending is PendingVerdict.TORN
    log.close()
    assert texts(opened(here, Framing.PENDING)) == ["a", "X"]
    assert here.read(PATH) == content("a", "X")


@both_framings
def test_r2_a_torn_tail_without_a_pending_entry_is_cut(here: FaultyHost, framing: Framing) -> None:
    here.write(PATH, content("a") + encoded(2, "torn")[:40])

    log = opened(here, framing)
    say(log, "X")

    log.close()
    assert texts(opened(here, framing)) == ["a", "X"]


@pytest.mark.parametrize("stale", [announced(encoded(1, "gate")), announced(encoded(2, "ungate"))])
def test_r3_a_stale_pending_entry_that_came_back_is_not_appended(
    here: FaultyHost, stale: bytes
) -> None:
    here.write(PATH, content("gate", "ungate"))
    here.write(PENDING, stale)

    log = opened(here, Framing.PENDING)

    assert (texts(log), log.report.pending) == (["gate", "ungate"], PendingVerdict.STALE)


@pytest.mark.parametrize("bad", [b"", bytes(180), b'{"model":"m"', "{}".encode("utf-32")])
def test_r8_one_unreadable_record_does_not_stop_the_others(here: FaultyHost, bad: bytes) -> None:
    good = SessionRecord("b" * 32, "scripted", "m", SessionState.SUSPENDED)
    here.write(f"agents/{'a' * 32}/session.json", bad)
    here.write(f"agents/{'b' * 32}/session.json", encode_record(good))

    store = SessionStore(here.host)

    damaged = store.examine("a" * 32)

    assert isinstance(damaged, SessionProblem)
    assert damaged.problem is Problem.DAMAGED
    assert store.examine("b" * 32) == good


@both_framings
@pytest.mark.parametrize("region", [bytes(1024), "{}\n".encode("utf-32"), b"\xff\xfe\n" * 60])
def test_r9_a_region_that_was_never_written_is_reported_and_contained(
    here: FaultyHost, framing: Framing, region: bytes
) -> None:
    here.write(PATH, content("a") + region + b"\n" + encoded(3, "c"))

    log = opened(here, framing)

    assert texts(log) == ["a", "c"]
    assert [damage.tail for damage in log.report.damaged] == [False]
    assert log.report.missing == ((2, 2),)
    assert here.read(f"{PATH}.quarantine.1") == region + b"\n"


def test_r18_the_entry_of_a_new_session_in_its_parent_is_durable(here: FaultyHost) -> None:
    SessionStore(here.host).add(SessionRecord("1" * 32, "scripted", "m", SessionState.ACTIVE))

    made = here.files.calls.index(f"mkdir agents/{'1' * 32}")
    assert here.files.calls[made + 1] == "sync_dir agents"


@both_framings
def test_r18_the_way_to_a_new_log_is_durable_although_its_directories_exist(
    here: FaultyHost, framing: Framing
) -> None:
    here.write(f"{DIRECTORY}/session.json", b"made by a process that was killed at once")

    opened(here, framing)

    created = here.files.calls.index(f"open-create {PATH}")
    assert here.files.calls[:created] == [
        f"listdir {DIRECTORY}", "sync_dir ", "sync_dir agents",
    ]  # fmt: skip
    assert f"sync_dir {DIRECTORY}" in here.files.calls[created:]


@both_framings
@pytest.mark.parametrize("taken", [0, 1, 40])
def test_r19_a_full_disk_leaves_no_torn_line_for_the_next_one_to_land_on(
    here: FaultyHost, framing: Framing, taken: int
) -> None:
    log = opened(here, framing)
    say(log, "a")
    if taken:
        here.files.transfer_less("append", "events.jsonl", taken)
    here.files.fail("append", "events.jsonl", errno.ENOSPC, nth=2 if taken else 1)

    with pytest.raises(StorageFull):
        say(log, "lost")
    say(log, "b")

    assert here.read(PATH) == content("a", "b")


@both_framings
def test_r19_a_line_behind_a_failed_barrier_is_never_built_upon(
    here: FaultyHost, framing: Framing
) -> None:
    log = opened(here, framing)
    say(log, "a")
    here.files.fail("fdatasync", "events.jsonl", errno.EIO)

    with pytest.raises(LogStopped):
        say(log, "unknown")
    with pytest.raises(LogStopped):
        say(log, "b")
    log.close()
    here.files.calls.clear()
    opened(here, framing)

    written = here.files.calls.index(f"pwrite {PATH}")
    assert f"fsync {PATH}" in here.files.calls[written:]
