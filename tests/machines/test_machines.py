"""Every part of the system under crashes and faults, as hard as the profile says."""

from __future__ import annotations

from tests.machines.rules import (
    AtomicFileRules,
    FramedLogRules,
    PendingLogRules,
    SessionStoreRules,
)


class AtomicFileLeaf(AtomicFileRules):
    """A file replaced as a whole."""


class FramedLogLeaf(FramedLogRules):
    """The event log with the framing ``framed``."""


class PendingLogLeaf(PendingLogRules):
    """The event log with the framing ``pending``."""


class SessionStoreLeaf(SessionStoreRules):
    """The session store."""


TestAtomicFile = AtomicFileLeaf.TestCase
TestFramedLog = FramedLogLeaf.TestCase
TestPendingLog = PendingLogLeaf.TestCase
TestSessionStore = SessionStoreLeaf.TestCase
