"""Recovery: ten passes from the disk that a crash has left to a runtime that can start.

Each pass is idempotent and may be interrupted at any point; the next recovery completes it. No
turn runs before the last pass has ended. A session that cannot be read is reported and left
unchanged; it never stops the others.
"""

from __future__ import annotations

import gc
from asyncio import CancelledError, wait
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from system.agents.dispatcher import Dispatcher
from system.recovery.apply_logs import apply_logs
from system.recovery.apply_outboxes import apply_outboxes
from system.recovery.dispatch_outboxes import dispatch_outboxes
from system.recovery.lock_root import lock_root
from system.recovery.notify_agents import notify_agents
from system.recovery.open_logs import open_logs
from system.recovery.place_agents import place_agents
from system.recovery.publish_report import publish_report
from system.recovery.resume import Resume
from system.recovery.root_recovery import RootRecovery
from system.recovery.suspend_sessions import suspend_sessions
from system.recovery.sweep_sessions import sweep_sessions

Pass: TypeAlias = Callable[[RootRecovery], Awaitable[None] | None]

PASSES: Final[Sequence[Pass]] = (
    lock_root,
    sweep_sessions,
    open_logs,
    apply_logs,
    place_agents,
    dispatch_outboxes,
    apply_outboxes,
    suspend_sessions,
    notify_agents,
    publish_report,
)
"""In their order; ``docs/runtime.md`` numbers them."""


async def recover(
    dispatcher: Dispatcher, *, is_recording: bool, resume: Resume = Resume.ALL
) -> RootRecovery:
    """Run the passes in their order, the first of which locks the root.

    ``resume`` chooses the agents whose tasks are resumed.

    Raises ``NotARoot``, ``RootInUse``, ``StorageError`` or ``OSError`` if the root as a whole
    cannot be opened; then its lock is free.
    """
    recovery = RootRecovery(dispatcher, is_recording=is_recording, resume=resume)
    # A root that cannot be locked leaves nothing to close.
    lock_root(recovery)
    collecting = gc.isenabled()
    # All objects of a recovery stay alive; collecting garbage would take a third of the time.
    gc.disable()
    try:
        for recovery_pass in PASSES[1:]:
            waiting = recovery_pass(recovery)
            if waiting is not None:
                await waiting
    except BaseException:
        await _close(recovery)
        raise
    finally:
        if collecting:
            gc.enable()
    return recovery


async def _close(recovery: RootRecovery) -> None:
    """Stop the tasks of a recovery that failed, close its logs, and free the lock."""
    orchestrator = recovery.orchestrator
    orchestrator.closing = True
    orchestrator.stop_waiting()
    while tasks := orchestrator.at_work():
        # Otherwise a second cancellation would leave the root locked.
        with suppress(CancelledError):
            await wait(tasks)
    # The logs of new agents are not among those that were found.
    new = [agent.log.log for agent in orchestrator.agents.values() if agent.log.log is not None]
    for log in {log.path: log for log in (*recovery.logs.values(), *new)}.values():
        with suppress(OSError):
            log.close()
    if orchestrator.state is not None:
        orchestrator.state.close()
    with suppress(OSError):
        recovery.root.close()
