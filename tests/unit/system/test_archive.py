"""The archive: a file that is removed is forgotten by its row, whatever a crash leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from crash_tests.workloads.host import host_of
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
from system.durable.state import StateDatabase, open_state
from system.ports import OpenMode

T = TypeVar("T")

FEW = Limits(states_per_point=24, samples=24, engine=Engine.BRUTE)
SESSIONS = ("a" * 32, "b" * 32)


class AtOnce:
    """Workers that need no event loop."""

    async def run(self, call: Callable[[], T]) -> T:
        return call()


def ended(session_id: str) -> Ended:
    path = archive_path(session_id)
    return Ended(session_id, session_id, "Ada", None, None, "operator", 1.0, path)


def archived() -> tuple[Image, str]:
    """A disk with the database and the archives of two sessions, and the id of its root."""
    disk = Disk(Image.empty())
    host = host_of(Process(disk))
    state = open_state(host, None)
    state.transact(lambda each: insert_ended(each, [ended(session) for session in SESSIONS]))
    state.close()
    host.files.mkdir("archive")
    for session_id in SESSIONS:
        file = host.files.open(archive_path(session_id), OpenMode.CREATE)
        file.pwrite(b"{}\n", 0)
        file.fsync()
    host.files.sync_dir("archive")
    host.files.sync_dir("")
    return disk.power_cut(SurvivorSet()), state.root_id


def remove_old(process: Process, root_id: str) -> StateDatabase:
    """Open the database, and remove the archives."""
    host = replace(host_of(process), workers=AtOnce())
    durable = DurableWork(host, AgentSessions({}))
    durable.state = open_state(host, root_id)
    work = Archive(host, durable, 0).remove_old()
    with pytest.raises(StopIteration):
        work.send(None)
    return durable.state


def ended_of(state: StateDatabase, session_id: str) -> Ended:
    row = state.transact(lambda transaction: ENDED.read(transaction, session_id))
    assert row is not None
    return row


@pytest.mark.parametrize("model", ["scc", "posix"])
def test_an_archive_whose_row_has_forgotten_it_does_not_come_back(model: str) -> None:
    image, root_id = archived()

    def remove(process: Process, ack: History) -> None:
        remove_old(process, root_id).close()
        ack("removed")

    def check(process: Process, known: Known) -> None:
        files, state = host_of(process).files, open_state(host_of(process), root_id)
        for session_id in SESSIONS:
            row = ended_of(state, session_id)
            is_there = files.kind(archive_path(session_id)) is not None
            if is_there and (known.acknowledged or row.archive is None):
                raise InvalidState("an archive is there that no row names", row=row)
        state.close()
        again = remove_old(process, root_id)
        rows = [ended_of(again, session_id) for session_id in SESSIONS]
        if files.listdir("archive") or any(row.archive for row in rows):
            raise InvalidState("an archive was not removed", rows=rows)
        again.close()

    result = explore(remove, check, model, FEW, image)
    assert not result.failures, str(result)
