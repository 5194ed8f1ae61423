"""A ``state.db`` that cannot be used: a typed error with the remedy, and nothing is touched."""

from __future__ import annotations

import errno
from asyncio import Event
from collections.abc import Callable

import pytest

from sim.disk.calls.process import Process
from sim.sqlite.connection import connect
from system.durable.errors import (
    ForeignState,
    RowHidden,
    StateDamaged,
    StateMissing,
    StateOutdated,
)
from system.durable.schema import VERSION
from system.durable.state import STATE
from system.durable.trigger import TriggerSpec
from system.errors import NewerFormat, RootInUse, StorageError
from system.runtime import Options
from system.sessions.session_problem import Problem
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, log_of, opened
from tests.unit.system.collected import HOUR, collected, family

FILES = dict[str, bytes]


def files_of(room: Room) -> FILES:
    """All files but the lock, in which each boot writes its epoch."""
    files = room.world.disk.files()
    return {path: content for path, content in files.items() if path != "/runtime.lock"}


def closed_root() -> tuple[Room, FILES]:
    """A closed root, whose agent has run two triggers; and its database after the first."""
    room, ada = opened(Options(recording=None))
    older: FILES = {}
    for number in range(2):
        spec = TriggerSpec("IMMEDIATE", number, session_id=room.session(ada))
        room.run(room.runtime.emit(spec))
        room.settle()
        if not older:
            room.run(room.runtime.close())
            older = {STATE: room.read(STATE)}
            room.open()
    room.say(ada, "a turn whose line says that the second trigger is settled")
    room.run(room.runtime.close())
    room.kill()
    assert f"{STATE}-wal" not in room.host.files.listdir("")
    return room, older


def replaced(room: Room, content: bytes) -> None:
    room.host.files.unlink(STATE)
    room.write(STATE, content)


def changed(room: Room, *statements: str) -> None:
    connection = room.host.database.open(STATE)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def missing(room: Room, _older: FILES) -> None:
    room.host.files.unlink(STATE)


def empty(room: Room, _older: FILES) -> None:
    replaced(room, b"")


def damaged(room: Room, _older: FILES) -> None:
    content = room.read(STATE)
    replaced(room, b"\xff" * 512 + content[512:])


def of_other_columns(room: Room, _older: FILES) -> None:
    content = room.read(STATE)
    assert content.count(b" last_nominal INTEGER") == 1
    replaced(room, content.replace(b" last_nominal INTEGER", b" last_mominal INTEGER"))


def torn(room: Room, _older: FILES) -> None:
    replaced(room, room.read(STATE)[:1500])


def of_another_program(room: Room, _older: FILES) -> None:
    changed(room, "PRAGMA application_id=7")


def of_another_root(room: Room, _older: FILES) -> None:
    changed(room, "UPDATE meta SET root_id='another'")


def newer(room: Room, _older: FILES) -> None:
    changed(room, f"PRAGMA user_version={VERSION + 1}")


def outdated(room: Room, older: FILES) -> None:
    replaced(room, older[STATE])


@pytest.mark.parametrize(
    ("spoil", "error", "remedy"),
    [
        (missing, StateMissing, "restore it from a copy that is not older than the logs"),
        (empty, StateMissing, "restore it from a copy that is not older than the logs"),
        (damaged, StateDamaged, "restore it from a copy that is not older than the logs"),
        (of_other_columns, StateDamaged, "restore it from a copy that is not older than the logs"),
        (torn, StateDamaged, "restore it from a copy that is not older than the logs"),
        (of_another_program, StateDamaged, "restore it from a copy"),
        (of_another_root, ForeignState, "restore the one that belongs to this root"),
        (newer, NewerFormat, "start the newer version that has written it"),
        (outdated, StateOutdated, "restore a copy that is not older than the logs"),
    ],
)
def test_a_root_with_a_bad_database_is_refused_and_left_as_it_is(
    spoil: Callable[[Room, FILES], None], error: type[StorageError], remedy: str
) -> None:
    room, older = closed_root()
    spoil(room, older)
    before = files_of(room)

    for _ in range(2):
        with pytest.raises(error, match=remedy):
            room.open()
        room.kill()

    assert files_of(room) == before


def test_a_root_whose_database_another_process_has_open_is_refused() -> None:
    room, _ = closed_root()
    before = files_of(room)
    connection = connect(Process(room.world.disk), f"/{STATE}")
    connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
    connection.execute("BEGIN EXCLUSIVE")

    with pytest.raises(RootInUse, match="end that one, its lock goes with it"):
        room.open()

    connection.execute("ROLLBACK")
    connection.close()
    assert files_of(room) == before


def test_a_root_whose_index_has_lost_a_claimed_trigger_is_refused_with_the_remedy() -> None:
    room, ada = opened()
    room.provider.hooks["send"] = Event().wait
    room.run(room.runtime.emit(TriggerSpec("IMMEDIATE", session_id=room.session(ada)), "trigger-2"))
    room.settle()
    room.kill()
    changed(room)
    before, after = room.read(STATE).rsplit(b"trigger-2", 1)
    replaced(room, before + b"trigger-1" + after)
    with pytest.raises(RowHidden, match="row=trigger-2 is not found by its key; run REINDEX"):
        room.open()


def test_an_agent_whose_row_in_applied_is_damaged_takes_no_turn() -> None:
    room, _ = closed_root()
    changed(room, "UPDATE applied SET crc='00000000'")
    room.open()
    bob = room.create("Bob")
    room.say(bob, "hello")
    assert "table=applied" in room.named("Ada").stopped
    assert (room.named("Bob").turns, room.named("Bob").stopped) == (1, "")


def test_a_row_that_is_no_text_does_not_keep_the_root_from_its_work() -> None:
    room, _ = closed_root()
    room.open()
    spec = TriggerSpec("IMMEDIATE", None, None, room.session(room.named("Ada").agent_id), 3e9)
    room.run(room.runtime.emit(spec))
    room.run(room.runtime.close())
    room.kill()
    changed(room, "UPDATE triggers SET session_id=CAST(x'ff' AS TEXT) WHERE fire_at=3e9")
    room.open()
    assert len(room.runtime.report.damaged_rows) == 1
    turns = room.named("Ada").turns
    room.say(room.named("Ada").agent_id, "hello")
    assert room.named("Ada").turns == turns + 1


def test_a_boot_reports_a_damaged_task() -> None:
    room, _ = closed_root()
    room.open()
    ada = room.named("Ada").agent_id
    room.say(ada, script(("begin_task", {"todos": ["a"]})))
    room.run(room.runtime.close())
    room.kill()
    changed(room, "UPDATE tasks SET crc='00000000'")
    [damaged] = room.open().report.damaged_rows
    assert "table=tasks" in damaged
    turns = room.named("Ada").turns
    room.say(ada, "hello")
    assert room.named("Ada").turns == turns + 1


def test_a_directory_whose_row_in_ended_is_damaged_is_left_and_the_others_are_served() -> None:
    room, ada, bob = family()
    session_id = room.session(bob)
    room.files.fail("unlink", "events.jsonl", errno.EIO)
    room.settle(HOUR + 1)
    room.run(room.runtime.close())
    room.kill()
    changed(room, "UPDATE ended SET crc='00000000'")
    log = room.read(log_of(session_id))

    [problem] = room.open().report.problems

    assert (problem.session_id, problem.problem) == (session_id, Problem.FAILED)
    assert "table=ended" in problem.detail
    assert room.read(log_of(session_id)) == log
    turns = room.named("Ada").turns
    room.say(ada, "hello")
    assert room.named("Ada").turns == turns + 1


@pytest.mark.parametrize("is_empty", [False, True])
def test_a_child_whose_row_in_ended_is_damaged_is_not_created_again(*, is_empty: bool) -> None:
    room, ada, _, session_id = collected()
    room.run(room.runtime.close())
    room.kill()
    changed(room, "UPDATE ended SET crc='00000000'")
    if is_empty:
        room.host.files.mkdir(f"agents/{session_id}")

    report = room.open().report

    assert all("table=ended" in each for each in report.damaged_rows)
    assert report.damaged_rows
    assert (report.orphans, report.problems, report.vanished) == ([], [], [])
    assert [agent.agent_id for agent in room.runtime.view().agents] == [ada]
