"""Which sessions are agents, their place in the tree, and which are removed."""

from __future__ import annotations

import errno

import pytest

from system.recovery.orphans import is_damaged
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem
from system.storage.log_report import Damage, LogReport
from tests.unit.system.agents.boot import problems, recovered
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    record_of,
    spawned,
)


def test_a_session_that_never_became_an_agent_is_removed_and_its_name_is_free(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada")[:1], SessionState.ACTIVE)

    recovered(room)

    assert room.runtime.report.orphans == [ONE]
    assert not room.exists(f"agents/{ONE}")
    room.create("Ada")


@pytest.mark.parametrize("tail", [True, False])
def test_only_bytes_that_a_crash_may_leave_are_no_damage(tail: bool) -> None:
    damage = Damage("log", 100, 10, "no seal", tail=tail, quarantine="q")
    assert is_damaged(LogReport("log", 2, damaged=(damage,))) is not tail
    assert is_damaged(LogReport("log", 2, missing=((2, 3),)))


def test_a_record_without_a_log_is_removed(room: Room) -> None:
    room.put_session(ONE, [], SessionState.ACTIVE)
    room.host.files.unlink(log_of(ONE))

    recovered(room)

    assert room.runtime.report.orphans == [ONE]
    assert not room.exists(f"agents/{ONE}")


def test_an_orphan_is_removed_durably(room: Room) -> None:
    room.put_session(ONE, [], SessionState.ACTIVE)
    room.files.calls.clear()

    recovered(room)

    removed = room.files.calls.index(f"rmdir agents/{ONE}")
    assert room.files.calls[removed + 1] == "sync_dir agents"


def test_an_orphan_that_cannot_be_removed_is_reported(room: Room) -> None:
    room.put_session(ONE, [], SessionState.ACTIVE)
    room.files.fail("rmdir", ONE, errno.EIO)

    recovered(room)

    assert problems(room) == [(ONE, Problem.FAILED)]


def test_an_empty_directory_is_an_orphan_as_well(room: Room) -> None:
    room.put_session(ONE, [], SessionState.ACTIVE)
    room.host.files.unlink(log_of(ONE))
    room.host.files.unlink(record_of(ONE))

    recovered(room)

    assert room.runtime.report.orphans == [ONE]


def test_the_empty_directory_of_a_child_that_is_created_now_is_no_orphan(room: Room) -> None:
    turn = completed("t", spawned=[spawned(BOB, TWO, "Bob")])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.host.files.mkdir(f"agents/{TWO}")

    recovered(room)

    assert room.runtime.report.orphans == []
    assert [agent.agent_id for agent in room.runtime.view().agents] == [ADA, BOB]


def test_what_damage_has_left_of_a_session_is_kept(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA)])
    content = room.read(log_of(ONE))
    at = content.index(b"agent.created")
    room.write(log_of(ONE), content[:at] + b"?" + content[at + 1 :])

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_DAMAGED)]
    assert room.runtime.report.orphans == []
    assert room.exists(log_of(ONE))
    assert room.runtime.view().agents == ()
    # Not only at the boot that met it.
    room.reopen(start=False)
    assert problems(room) == [(ONE, Problem.LOG_DAMAGED)]


def test_a_damaged_record_without_an_agent_is_no_orphan(room: Room) -> None:
    room.put_session(ONE, [], state=None)
    room.write(record_of(ONE), b"damaged")

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_DAMAGED)]
    assert room.exists(f"agents/{ONE}")


def test_children_stand_below_their_parents_whatever_their_ids(room: Room) -> None:
    room.put_session(ONE, created(BOB, "Bob", parent=TWO))
    room.put_session(TWO, created(ADA, "Ada"))

    recovered(room)

    shown = [(agent.name, agent.parent_id) for agent in room.runtime.view().agents]
    assert shown == [("Ada", None), ("Bob", ADA)]


def test_a_child_without_its_parent_is_reported_and_counts_as_a_root(room: Room) -> None:
    room.put_session(ONE, created(BOB, "Bob", parent=TWO))

    recovered(room)

    assert room.runtime.report.detached == [ONE]
    assert room.named("Bob").parent_id is None


def test_a_log_without_its_first_line_is_run_by_whom_the_record_names(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada")[1:])

    recovered(room)

    session = room.agent(ADA).history.session
    assert session is not None
    assert (session.provider, session.model, session.system_prompt) == ("scripted", "", "")


def test_an_agent_of_whom_nothing_says_who_runs_it_is_stopped(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada")[1:], state=None)

    recovered(room)

    assert room.named("Ada").stopped == "neither its log nor its record says which provider it has"
    assert room.named("Ada").alive
