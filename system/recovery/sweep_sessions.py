"""Pass 2: remove temporary files, and the empty directories of sessions."""

from __future__ import annotations

from system.recording.wal_recovery import sweep_recording
from system.recovery.root_recovery import RootRecovery


def sweep_sessions(recovery: RootRecovery) -> None:
    """Sweep all sessions; those that the disk refuses are reported and not served."""
    sweep = recovery.store.sweep()
    recovery.sessions = sweep.sessions
    recovery.report.swept += sweep.swept
    recovery.report.orphans += sweep.removed
    recovery.report.problems += sweep.problems
    if recovery.is_recording:
        recovery.report.swept += sweep_recording(recovery.host.files)
