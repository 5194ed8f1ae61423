"""Pass 1: lock the root, open ``state.db`` if there is one, begin a new boot epoch."""

from __future__ import annotations

from collections.abc import Sequence

from system.durable.open_state import open_state
from system.durable.seconds import SteadyClock
from system.durable.state import StateDatabase
from system.ports import Host
from system.recovery.root_recovery import RootRecovery
from system.root import DATABASE, Root


def lock_root(recovery: RootRecovery) -> None:
    """Open the root; raises as ``Root.open`` and ``open_state``."""
    host, orchestrator = recovery.host, recovery.orchestrator
    durable = orchestrator.durable

    def open_database(root_id: str | None, names: Sequence[str]) -> None:
        if root_id is not None or DATABASE in names:
            durable.state = open_state(host, root_id, durable.clock)

    try:
        recovery.root = root = Root.open(host.files, host.ids, open_database)
    except BaseException:
        if durable.state is not None:
            durable.state.close()
        raise
    # The call must not refer to its holder: a cycle would need the garbage collector.
    clock = durable.clock
    durable.create = lambda: create_database(host, root, clock)
    durable.begin(root.epoch)
    recovery.report.epoch = orchestrator.epoch = root.epoch
    recovery.report.swept += root.swept


def create_database(host: Host, root: Root, clock: SteadyClock) -> StateDatabase:
    """Create the ``state.db`` of a root that has none; raises as ``open_state``.

    Afterwards ``root.json`` names it; if writing that fails, the database is closed.
    """
    state = open_state(host, None, clock)
    try:
        root.adopt(host.files, host.ids, state.root_id)
    except BaseException:
        state.close()
        raise
    return state
