"""Session stores that lose sessions: holes R8 and R18."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from crash_tests.mutants.careless_files import ForgottenBarriers
from crash_tests.targets.session_store import SessionStoreTarget
from oracles.violation import LostAck, NotContained, SilentEmpty, UnreadableAfterCrash
from powercut.fuzz.mutant import Mutant
from system.ports import Host
from system.sessions.session import SessionRecord
from system.sessions.session_store import SessionStore


class IntolerantStore(SessionStore):
    """A store in which a record that cannot be read stops everything."""

    def examine(self, session_id: str) -> SessionRecord:
        return self.load(session_id)


def _one_bad_record_stops_all(host: Host) -> SessionStore:
    """R8: one unreadable record raises out of ``scan`` and ``recover``."""
    return IntolerantStore(host)


def _new_directory_has_no_barrier(host: Host) -> SessionStore:
    """R18: the barrier is on the directory of the session, never on the one that holds it."""
    holder = SessionStore(host).directory
    return SessionStore(replace(host, files=ForgottenBarriers(host.files, holder.__eq__)))


one_bad_record_stops_all = Mutant(
    "one unreadable session record stops the recovery of all",
    partial(SessionStoreTarget, "session-store", _one_bad_record_stops_all),
    (
        NotContained,
        UnreadableAfterCrash,
    ),
)
new_directory_has_no_barrier = Mutant(
    "the entry of a new session's directory is never made durable",
    partial(SessionStoreTarget, "session-store", _new_directory_has_no_barrier),
    (
        LostAck,
        SilentEmpty,
    ),
)
