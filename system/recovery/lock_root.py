"""Pass 1: lock the root, open ``state.db`` if there is one, begin a new boot epoch."""

from __future__ import annotations

from collections.abc import Sequence

from system.durable.state import StateDatabase, open_state
from system.ports import Host
from system.recovery.root_recovery import RootRecovery
from system.root import DATABASE, Root


def lock_root(recovery: RootRecovery) -> None:
    """Open the root; raises as ``Root.open`` and ``open_state``."""
    host, orchestrator = recovery.host, recovery.orchestrator
    durable = orchestrator.durable

    def open_database(root_id: str | None, names: Sequence[str]) -> None:
        if root_id is not None or DATABASE in names:
            durable.state = open_state(host, root_id)

    try:
        recovery.root = root = Root.open(host.files, host.ids, open_database)
    except BaseException:
        if durable.state is not None:
            durable.state.close()
        raise
    if durable.state is not None and root.root_id is None:
        # A crash came between the database and the marker that names it.
        _adopt(host, root, durable.state)
    durable.create = lambda: create_database(host, root)
    durable.begin(root.epoch)
    recovery.report.epoch = orchestrator.epoch = root.epoch
    recovery.report.swept += root.swept


def create_database(host: Host, root: Root) -> StateDatabase:
    """Create the ``state.db`` of a root that has none; raises as ``open_state``."""
    state = open_state(host, None)
    _adopt(host, root, state)
    return state


def _adopt(host: Host, root: Root, state: StateDatabase) -> None:
    """Let the marker of the root name its database; if that fails, the database is closed."""
    try:
        root.adopt(host.files, host.ids, state.root_id)
    except BaseException:
        state.close()
        raise
