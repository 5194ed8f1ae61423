"""Pass 1: lock the root, and begin a new boot epoch."""

from __future__ import annotations

from system.recovery.root_recovery import RootRecovery
from system.root import Root


def lock_root(recovery: RootRecovery) -> None:
    """Open the root; raises as ``Root.open``."""
    recovery.root = Root.open(recovery.host.files, recovery.host.ids)
    recovery.report.epoch = recovery.orchestrator.epoch = recovery.root.epoch
    recovery.report.swept += recovery.root.swept
