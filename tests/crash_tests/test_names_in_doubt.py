"""A file that is replaced again after the barrier of its name failed always has a name."""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from crash_tests.workloads.lifetime import Lifetime
from oracles.history import History, Known
from oracles.violation import InvalidState
from powercut.explorer.explore import explore
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from system.ports import Host
from system.recording.open_recording import open_recording
from system.recording.stores.file_store import FileExecutionStore
from system.recording.wal_store import WalExecutionRecorder
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore
from system.storage.atomic_file import write_atomic
from tests.sample import in_the_gate
from tests.unit.recording.executions import ENVELOPE, EVENTS, RESPONSE, finished, record_events
from tests.unit.system.faulty_files import FaultyFiles

_SESSION = "1" * 32
_RECORD = finished()

Write = Callable[[], Coroutine[Any, Any, object]]


async def _session(host: Host) -> Write:
    store, states = SessionStore(host), iter([b"new", b"newer"])
    store.add(SessionRecord(_SESSION, "scripted", "m", SessionState.SUSPENDED, b"old"))

    async def write() -> None:
        store.replace(
            SessionRecord(_SESSION, "scripted", "m", SessionState.SUSPENDED, next(states))
        )

    return write


async def _execution_record(host: Host) -> Write:
    store = FileExecutionStore(host)
    store.save(_RECORD)

    async def write() -> None:
        store.invalidate(_RECORD.execution_id, "wrong", "Ada")

    return write


async def _checkpoint(host: Host) -> Write:
    recording, _ = await open_recording(host)

    async def write() -> None:
        recorder = WalExecutionRecorder(host, recording, 1.0)
        recorder.start(ENVELOPE)
        record_events(recorder, EVENTS)
        await recorder.finalize(RESPONSE)
        await recording.checkpoint()

    await write()
    return write


_USERS = {
    f"agents/{_SESSION}/session.json": (_session, f"agents/{_SESSION}", 1),
    f"records/{_RECORD.execution_id}.json": (_execution_record, "records", 1),
    # Before it, the directories of the segment and of the pack are synced.
    "checkpoint": (_checkpoint, "", 3),
}
"""Each file, what replaces it, and which barrier of a directory is that of its name."""


def _exists(path: str) -> Callable[[Process, Known], None]:
    def check(process: Process, known: Known) -> None:
        if known.acknowledged and f"/{path}" not in process.disk.files():
            raise InvalidState("the file has no name", path=path)

    return check


@pytest.mark.parametrize("path", _USERS)
@pytest.mark.parametrize("model", in_the_gate(MODELS, lambda name: name == "btrfs"))
def test_a_power_cut_after_a_second_replacement(path: str, model: str) -> None:
    user, directory, nth = _USERS[path]

    async def replaced_twice(host: Host, files: FaultyFiles, ack: History) -> None:
        write = await user(host)
        ack("old")
        files.fail("sync_dir", directory, errno.EIO, nth)
        with pytest.raises(OSError, match="Input/output"):
            await write()
        await write()

    def workload(process: Process, ack: History) -> None:
        with Lifetime(process) as (host, loop):
            files = FaultyFiles(host.files)
            loop.run_until_complete(replaced_twice(replace(host, files=files), files, ack))

    found = explore(workload, _exists(path), model)
    assert found.safe, found.failures[0].violation


@pytest.mark.parametrize("model", MODELS)
def test_a_file_that_is_replaced_again_keeps_its_name_under_every_model(model: str) -> None:
    def workload(process: Process, ack: History) -> None:
        with Lifetime(process) as (host, _):
            files = FaultyFiles(host.files)
            write_atomic(files, "f", b"old", host.ids)
            ack("old")
            files.fail("sync_dir", "", errno.EIO)
            with pytest.raises(OSError, match="Input/output"):
                write_atomic(files, "f", b"new", host.ids)
            write_atomic(files, "f", b"newer", host.ids)

    assert explore(workload, _exists("f"), model).safe
