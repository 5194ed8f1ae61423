"""Pass 7: the promises to ``state.db``; no line of this version makes one."""

from __future__ import annotations

from system.recovery.root_recovery import RootRecovery


def check_database(recovery: RootRecovery) -> None:
    """Do nothing yet: triggers, tasks and activities are not joined to the turns."""
    del recovery
