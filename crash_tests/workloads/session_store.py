"""The session store: create, suspend, take up again, terminate; crash, recover, crash that."""

from __future__ import annotations

from typing import Final, NamedTuple

from crash_tests.workloads.host import host_of
from crash_tests.workloads.workload import Workload
from oracles.history import History, Known
from oracles.violation import InvalidState, LostAck, Phantom, TornRecord
from powercut.explorer.limits import Limits
from sim.disk.calls.process import Process
from system.sessions.session import SessionState
from system.sessions.session_store import SessionStore

_MOVES: Final = (SessionState.SUSPENDED, SessionState.ACTIVE, SessionState.TERMINATED)


class Saved(NamedTuple):
    """What a record said when it was saved."""

    state: SessionState
    blob: bytes


def _living(disk: Process, ack: History) -> None:
    store = SessionStore(host_of(disk))
    blob = b"turn 0"
    ack.attempt(Saved(SessionState.ACTIVE, blob))
    record = store.create("scripted", "model-1", blob)
    ack(Saved(SessionState.ACTIVE, blob))
    for turn, state in enumerate(_MOVES, 1):
        blob = b"turn %d" % turn
        record = record.moved_to(state, blob)
        ack.attempt(Saved(state, blob))
        store.save(record)
        ack(Saved(state, blob))


def _recovering(disk: Process, known: Known) -> None:
    report = SessionStore(host_of(disk)).recover()
    if report.problems:
        raise InvalidState("recovery reports damage that no crash can do", report=report)
    if len(report.records) > 1:
        raise Phantom("one creation has made two sessions", sessions=report.records)
    latest = known.acknowledged[-1:]
    allowed = [_recovered(value) for value in (*latest, *known.in_flight)]
    if not report.records:
        if latest:
            raise LostAck("an acknowledged session is gone", allowed=allowed)
        return
    record = report.records[0]
    seen = Saved(record.state, record.provider_state_blob)
    if seen not in allowed:
        raise TornRecord(
            "the record is neither the old one nor the new", seen=seen, allowed=allowed
        )


def _recovered(value: object) -> Saved:
    """Return what recovery makes of a saved record: no conversation is open after a crash."""
    assert isinstance(value, Saved)
    active = value.state is SessionState.ACTIVE
    return value._replace(state=SessionState.SUSPENDED) if active else value


session_store = Workload(
    "create a session and save it three times, recover, crash the recovery",
    _living,
    _recovering,
    limits=Limits(nested=1),
)
