"""The session store: add a record, replace it three times; crash, recover, crash the recovery."""

from __future__ import annotations

from typing import Final, NamedTuple

from crash_tests.rig.process_host import host_of
from crash_tests.workloads.workload import Workload
from oracles.history import History, Known
from oracles.violation import InvalidState, LostAck, Phantom, TornRecord
from powercut.explorer.limits import Limits
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore

SESSION: Final = "5e" * 16
_MOVES: Final = (SessionState.SUSPENDED, SessionState.ACTIVE, SessionState.TERMINATED)


class Saved(NamedTuple):
    """State and blob of a record."""

    state: SessionState
    blob: bytes


def _save(process: Process, ack: History) -> None:
    store = SessionStore(host_of(process))
    blob = b"turn 0"
    ack.attempt(Saved(SessionState.ACTIVE, blob))
    record = SessionRecord(SESSION, "scripted", "model-1", SessionState.ACTIVE, blob)
    store.add(record)
    ack(Saved(SessionState.ACTIVE, blob))
    for turn, state in enumerate(_MOVES, 1):
        blob = b"turn %d" % turn
        record = record.moved_to(state, blob)
        ack.attempt(Saved(state, blob))
        store.replace(record)
        ack(Saved(state, blob))


def _recover(process: Process) -> list[Saved]:
    host = host_of(process)
    store = SessionStore(host)
    sweep = store.sweep()
    found = [store.examine(session_id) for session_id in sweep.sessions]
    for session_id in sweep.sessions:
        host.files.sync_dir(store.directory_of(session_id))
    records = [record for record in found if isinstance(record, SessionRecord)]
    if sweep.problems or len(records) < len(found):
        raise InvalidState("recovery reports damage that no crash can do", found=found)
    if len(records) > 1:
        raise Phantom("one creation has made two sessions", sessions=records)
    return [Saved(record.state, record.provider_state_blob) for record in records]


def _judge(found: list[Saved], known: Known) -> None:
    latest = known.acknowledged[-1:]
    allowed = [*latest, *known.in_flight]
    if not found:
        if latest:
            raise LostAck("an acknowledged session is gone", allowed=allowed)
        return
    (actual,) = found
    if actual not in allowed:
        raise TornRecord(
            "the record is neither the old one nor the new", actual=actual, allowed=allowed
        )


session_store = Workload(
    "add a record and replace it three times, recover, crash the recovery",
    _save,
    TwoPhases(_recover, _judge),
    limits=Limits(nested=1),
)
