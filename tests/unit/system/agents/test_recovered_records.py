"""Passes 6 and 8: records that are missing, damaged, newer, or behind their logs."""

from __future__ import annotations

import errno

from system.agents.provider_state import ProviderState
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem
from system.storage.codec import seal
from tests.unit.system.agents.boot import END, problems, recovered
from tests.unit.system.agents.room import (
    ADA,
    ONE,
    Room,
    completed,
    created,
    record_of,
)


def test_a_record_that_is_missing_is_written_from_the_log(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada", identity="c7"), state=None)

    recovered(room)

    assert room.state(ONE) == "SUSPENDED"
    kept = room.agent(ADA).log.record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c7")
    assert problems(room) == [(ONE, Problem.NO_RECORD)]
    room.reopen(start=False)
    assert problems(room) == []


def test_a_record_that_is_damaged_is_put_aside_and_written_from_the_log(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.write(record_of(ONE), b"damaged")

    recovered(room)

    (problem,) = room.runtime.report.problems
    assert (problem.session_id, problem.problem) == (ONE, Problem.DAMAGED)
    assert room.read(problem.quarantine) == b"damaged"
    assert room.state(ONE) == "SUSPENDED"
    assert room.named("Ada").alive


def test_the_missing_record_of_an_agent_that_has_ended_says_so(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), END], state=None)

    recovered(room)

    assert room.state(ONE) == "TERMINATED"


def test_a_record_of_a_newer_format_is_left_as_it_is_and_the_agent_is_served(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    newer = seal({"v": 2}) + b"\n"
    room.write(record_of(ONE), newer)

    room.open()
    room.say(ADA, "hello")

    assert room.read(record_of(ONE)) == newer
    assert problems(room) == [(ONE, Problem.NEWER)]
    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_a_record_that_the_disk_refuses_is_reported_and_written_at_the_next_boot(
    room: Room,
) -> None:
    room.put_session(ONE, created(ADA, "Ada"), state=None)
    room.files.fail("replace", record_of(ONE), errno.EIO)

    recovered(room)
    assert problems(room) == [(ONE, Problem.FAILED)]
    room.reopen(start=False)

    assert room.state(ONE) == "SUSPENDED"


def test_a_session_that_was_active_is_suspended(room: Room) -> None:
    blob = ProviderState("c1", 0, b"blob").encoded()
    room.put_session(ONE, created(ADA, "Ada"), SessionState.ACTIVE, blob)

    recovered(room)

    assert room.runtime.report.suspended == [ONE]
    assert room.state(ONE) == "SUSPENDED"
    kept = room.agent(ADA).log.record
    assert kept is not None
    assert kept.provider_state_blob == blob


def test_the_record_keeps_no_blob_that_is_older_than_its_log(room: Room) -> None:
    # Planted bug R15, in the record: the blob is of no turn, the log has one.
    room.provider.kept = ["c1"]
    blob = ProviderState("c1", 0, b"old").encoded()
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t")], SessionState.SUSPENDED, blob)
    room.open()

    room.say(ADA, "hello")

    kept = room.agent(ADA).log.record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c1")
    assert room.provider.blobs == [b""]


def test_a_record_that_cannot_become_suspended_is_reported(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"), SessionState.ACTIVE)
    room.files.fail("replace", record_of(ONE), errno.EIO)

    recovered(room)

    assert problems(room) == [(ONE, Problem.FAILED)]
    assert room.runtime.report.suspended == []
