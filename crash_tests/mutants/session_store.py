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
    """R8: one unreadable record stops the recovery of all."""

    def examine(self, session_id: str) -> SessionRecord:
        return self.load(session_id)


def _without_parent_barriers(host: Host) -> Host:
    """R18: the barrier is on the directory of a session, never on its parent."""
    parent = SessionStore(host).directory
    return replace(host, files=ForgottenBarriers(host.files, parent.__eq__))


one_bad_record_stops_all = Mutant(
    "one unreadable session record stops the recovery of all",
    partial(SessionStoreTarget, "session-store", store=IntolerantStore),
    (
        NotContained,
        UnreadableAfterCrash,
    ),
)
new_directory_has_no_barrier = Mutant(
    "the entry of a new session's directory is never made durable",
    partial(SessionStoreTarget, "session-store", change_host=_without_parent_barriers),
    (
        LostAck,
        SilentEmpty,
    ),
)
