"""Pass 7: refuse a root with a ``state.db``; this version has no scheduled work."""

from __future__ import annotations

from system.recovery.root_recovery import RootRecovery
from system.root import check_served


def check_database(recovery: RootRecovery) -> None:
    """Raise ``NewerFormat`` if a version with durable execution has used this root."""
    check_served(recovery.root.names)
