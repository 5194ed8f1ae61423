"""Every part of the system under crashes and faults, as hard as the profile says."""

from __future__ import annotations

from tests.crash_tests.rules import (
    AtomicFileRules,
    FramedLogRules,
    LifecycleRules,
    PendingLogRules,
    PendingRuntimeOnBtrfsRules,
    PendingRuntimeRules,
    RuntimeOnExt4Rules,
    RuntimeOnXfsRules,
    RuntimeRules,
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


class LifecycleLeaf(LifecycleRules):
    """Agents that come, work and go; nothing crashes."""


class RuntimeLeaf(RuntimeRules):
    """The whole runtime on a disk that promises only what POSIX does."""


class RuntimeOnExt4Leaf(RuntimeOnExt4Rules):
    """The whole runtime on ext4 as most people mount it."""


class RuntimeOnXfsLeaf(RuntimeOnXfsRules):
    """The whole runtime on xfs."""


class PendingRuntimeLeaf(PendingRuntimeRules):
    """The whole runtime with the framing ``pending``."""


class PendingRuntimeOnBtrfsLeaf(PendingRuntimeOnBtrfsRules):
    """The whole runtime with the framing ``pending``, on btrfs."""


TestAtomicFile = AtomicFileLeaf.TestCase
TestFramedLog = FramedLogLeaf.TestCase
TestPendingLog = PendingLogLeaf.TestCase
TestSessionStore = SessionStoreLeaf.TestCase
TestLifecycle = LifecycleLeaf.TestCase
TestRuntime = RuntimeLeaf.TestCase
TestRuntimeOnExt4 = RuntimeOnExt4Leaf.TestCase
TestRuntimeOnXfs = RuntimeOnXfsLeaf.TestCase
TestPendingRuntime = PendingRuntimeLeaf.TestCase
TestPendingRuntimeOnBtrfs = PendingRuntimeOnBtrfsLeaf.TestCase
