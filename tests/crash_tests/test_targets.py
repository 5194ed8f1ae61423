"""Every part of the system under crashes and faults, as hard as the profile says.

The gate runs the whole runtime in each framing once, under different models.
"""

from __future__ import annotations

import pytest

from tests.crash_tests.rules import (
    AtomicFileRules,
    DurableRules,
    FramedLogRules,
    LifecycleRules,
    PendingLogRules,
    PendingRuntimeOnBtrfsRules,
    PendingRuntimeRules,
    RecordingRules,
    RuntimeOnExt4Rules,
    RuntimeOnXfsRules,
    RuntimeRules,
    SessionStoreRules,
)


class AtomicFileLeaf(AtomicFileRules):
    """A file that is replaced atomically."""


class FramedLogLeaf(FramedLogRules):
    """The event log with the framing ``framed``."""


class PendingLogLeaf(PendingLogRules):
    """The event log with the framing ``pending``."""


class SessionStoreLeaf(SessionStoreRules):
    """The session store."""


class LifecycleLeaf(LifecycleRules):
    """Agents that are created, work and end; nothing crashes."""


class RecordingLeaf(RecordingRules):
    """Recorder, write-ahead log and record store."""


class DurableLeaf(DurableRules):
    """Triggers, schedules, tasks and activities in one database."""


class RuntimeLeaf(RuntimeRules):
    """The whole runtime under the model ``posix``."""


class RuntimeOnExt4Leaf(RuntimeOnExt4Rules):
    """The whole runtime on ext4 with its default options."""


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
TestRecording = RecordingLeaf.TestCase
TestDurable = DurableLeaf.TestCase
TestRuntime = RuntimeLeaf.TestCase
TestRuntimeOnExt4 = pytest.mark.stress(RuntimeOnExt4Leaf.TestCase)
TestRuntimeOnXfs = pytest.mark.stress(RuntimeOnXfsLeaf.TestCase)
TestPendingRuntime = pytest.mark.stress(PendingRuntimeLeaf.TestCase)
TestPendingRuntimeOnBtrfs = PendingRuntimeOnBtrfsLeaf.TestCase
