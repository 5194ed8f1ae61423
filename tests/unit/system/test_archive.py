"""The archive: a file that is removed is forgotten by its row, whatever a crash leaves."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from crash_tests.rig.process_host import host_of
from oracles.history import History, Known
from oracles.violation import InvalidState
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from system.agents.durable_work import AgentSessions, DurableWork
from system.archive import Archive, archive_path
from system.durable.ended import ENDED, Ended, insert_ended
from system.durable.open_state import open_state
from system.durable.state import StateDatabase
from system.ports import OpenMode
from system.storage.line import decode_line
from tests.sample import in_the_gate
from tests.unit.system.collected import AFTER_AN_HOUR, DAY, HOUR, archived_for, ended, family

T = TypeVar("T")

SESSIONS = ("a" * 32, "b" * 32)


class AtOnce:
    """Workers that need no event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        return call()


def row_of(session_id: str) -> Ended:
    path = archive_path(session_id)
    return Ended(session_id, session_id, "Ada", None, None, "operator", 1.0, path)


def archived() -> tuple[Image, str]:
    """A disk with the database and the archives of two sessions, and the id of its root."""
    disk = Disk(Image.empty())
    host = host_of(Process(disk))
    state = open_state(host, None)
    state.transact(lambda each: insert_ended(each, [row_of(session) for session in SESSIONS]))
    state.close()
    host.files.mkdir("archive")
    for session_id in SESSIONS:
        file = host.files.open(archive_path(session_id), OpenMode.CREATE)
        file.pwrite(b"{}\n", 0)
        file.fsync()
    host.files.sync_dir("archive")
    host.files.sync_dir("")
    return disk.power_cut(SurvivorSet()), state.root_id


def read(state: StateDatabase, agent_id: str) -> Ended:
    found = state.transact(lambda each: ENDED.read(each, agent_id))
    assert found is not None
    return found


def remove_old(process: Process, root_id: str) -> StateDatabase:
    """Open the database, and remove the archives."""
    host = replace(host_of(process), workers=AtOnce())
    durable = DurableWork(host, AgentSessions({}))
    durable.state = open_state(host, root_id)
    work = Archive(host, durable, 0).remove_old()
    with pytest.raises(StopIteration):
        work.send(None)
    return durable.state


@pytest.mark.parametrize(
    ("model", "states"),
    in_the_gate([("scc", 24), ("posix", 6), ("posix", 24)], lambda case: case != ("posix", 24)),
)
def test_an_archive_whose_row_has_forgotten_it_does_not_come_back(model: str, states: int) -> None:
    few = Limits(states_per_point=states, samples=states, engine=Engine.BRUTE)
    image, root_id = archived()

    def remove(process: Process, ack: History) -> None:
        remove_old(process, root_id).close()
        ack("removed")

    def check(process: Process, known: Known) -> None:
        files, state = host_of(process).files, open_state(host_of(process), root_id)
        for session_id in SESSIONS:
            row = read(state, session_id)
            is_there = files.kind(archive_path(session_id)) is not None
            if is_there and (known.acknowledged or row.archive is None):
                raise InvalidState("an archive is there that no row names", row=row)
        state.close()
        again = remove_old(process, root_id)
        rows = [read(again, session_id) for session_id in SESSIONS]
        if files.listdir("archive") or any(row.archive for row in rows):
            raise InvalidState("an archive was not removed", rows=rows)
        again.close()

    result = explore(remove, check, model, few, image)
    assert not result.failures, str(result)


def test_the_archive_has_all_lines_and_the_row_says_where() -> None:
    room, ada, bob = family()
    session_id = room.session(bob)
    lines = room.read(f"agents/{session_id}/events.jsonl")
    room.settle(HOUR + 1)

    assert room.read(f"archive/{session_id}.jsonl") == lines
    assert room.runtime.report.archived_bytes == len(lines)
    row = ended(room, bob)
    assert row is not None
    assert (row.session_id, row.name, row.how, row.request_id) == (
        session_id, "Bob", "operator", None,
    )  # fmt: skip
    assert (row.archive, row.parent_session_id) == (
        f"archive/{session_id}.jsonl",
        room.session(ada),
    )


def test_the_archive_has_the_lines_of_all_segments() -> None:
    room, _, bob = family(replace(AFTER_AN_HOUR, snapshot_lines=3), "first", "second", "third")
    session_id = room.session(bob)
    assert len(room.host.files.listdir(f"agents/{session_id}")) > 2
    room.settle(HOUR + 1)

    path = archive_path(session_id)
    lines = [decode_line(line, session_id, path) for line in room.read(path).splitlines()]
    assert [line.seq for line in lines] == list(range(1, len(lines) + 1))
    assert [line.event for line in lines].count("turn.complete") == 4


def test_the_lines_of_an_agent_can_be_removed() -> None:
    room, _, bob = family(archived_for(0))
    room.settle(HOUR + 1)

    assert not room.exists("archive")
    row = ended(room, bob)
    assert row is not None
    assert row.archive is None


def test_the_archive_is_removed_in_its_time() -> None:
    room, _, bob = family(archived_for(30 * DAY))
    path = f"archive/{room.session(bob)}.jsonl"
    room.settle(29 * DAY)
    assert room.exists(path)
    room.reopen()
    room.settle(DAY - 60)
    assert room.exists(path)

    room.settle(2 * HOUR)

    assert not room.exists(path)
    row = ended(room, bob)
    assert row is not None
    assert row.archive is None
    assert row.name == "Bob"
    assert room.runtime._collector is not None
    assert room.runtime._collector.tasks() == []


def test_agents_that_end_while_an_archive_waits_are_collected_in_their_time() -> None:
    room, _, _ = family(archived_for(300 * DAY))
    room.settle(2 * HOUR)
    cleo = room.create("Cleo")
    room.run(room.runtime.terminate(cleo))

    room.settle(2 * HOUR)

    assert ended(room, cleo) is not None


@pytest.mark.parametrize("call", ["unlink", "sync_dir"])
def test_an_archive_that_the_disk_refuses_to_remove_is_removed_later(call: str) -> None:
    room, _, bob = family(archived_for(2 * DAY))
    session_id = room.session(bob)
    room.settle(DAY)
    room.files.fail(call, f"{session_id}.jsonl" if call == "unlink" else "archive", errno.EIO)
    room.settle(DAY)
    row = ended(room, bob)
    assert row is not None
    assert row.archive is not None

    room.settle(2 * HOUR)

    assert not room.exists(f"archive/{session_id}.jsonl")
    room.check_no_failures()


def test_an_archive_that_the_disk_refuses_leaves_everything_as_it_was() -> None:
    room, _, bob = family()
    session_id = room.session(bob)
    room.files.fail("replace", f"{session_id}.jsonl", errno.ENOSPC)

    room.settle(HOUR + 1)

    assert room.exists(f"agents/{session_id}/events.jsonl")
    assert not room.exists("state.db")
    room.check_no_failures()
    room.settle(3 * HOUR)
    assert not room.exists(f"agents/{session_id}")
