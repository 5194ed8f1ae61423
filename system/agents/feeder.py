"""The feeder: wakes the agents whose triggers are due. One timer, and no polling.

The timer is armed for the next trigger that becomes due. Triggers that are due already wait in
memory until a turn takes them: the end of a turn, or a gate that opens, asks for them.
"""

from __future__ import annotations

from asyncio import CancelledError, Task
from collections.abc import Callable
from typing import Final

from system.agents.agent import Agent
from system.agents.orchestrator import LONGEST_PAUSE_NS, SECOND_NS, Orchestrator
from system.durable.errors import RowDamaged
from system.durable.state import Transaction
from system.durable.stores import Stores
from system.errors import StorageError

LONGEST_SLEEP_NS: Final = 600 * SECOND_NS
"""After ten minutes the timer reads the wall clock again, which may have been set right."""


class Feeder:
    """Feeds the agents of one root from the moment at which ``arm`` is called first."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator
        self._durable = orchestrator.durable
        self._timer: Task[None] | None = None
        self._wakes_ns = 0
        self._is_sleeping = self._is_asked = self._is_behind = False
        self._pause_ns = SECOND_NS

    def arm(self) -> None:
        """Arm the timer for the next trigger that becomes due, or the next attempt to write."""
        delay_ns = self._delay_ns()
        if delay_ns is None or self._orchestrator.closing:
            return
        wakes_ns = self._orchestrator.host.clock.monotonic_ns() + delay_ns
        # While it feeds, it arms itself again.
        if self._timer is None or (self._is_sleeping and wakes_ns < self._wakes_ns):
            self._begin(delay_ns)

    def _begin(self, delay_ns: int) -> None:
        if self._timer is not None:
            if not self._is_sleeping:
                self._is_asked = True
                return
            self._timer.cancel()
        now_ns = self._orchestrator.host.clock.monotonic_ns()
        self._wakes_ns, self._is_sleeping = now_ns + delay_ns, delay_ns > 0
        self._timer = self._orchestrator.task(self._feed_after(delay_ns), "feeder")

    def feed_now(self) -> None:
        """Feed at once: agents have begun or ended, or turns may begin."""
        if not self._orchestrator.closing:
            self._begin(0)

    def stop(self) -> None:
        """Cancel the timer if its time has not come."""
        if self._timer is not None and self._is_sleeping:
            self._timer.cancel()

    def tasks(self) -> list[Task[None]]:
        """Return the task that feeds at this moment."""
        if self._timer is None or self._is_sleeping or self._timer.done():
            return []
        return [self._timer]

    async def _feed(self) -> None:
        """Wake every agent of which a trigger has become due; route those without a session."""
        sessions = self._orchestrator.sessions
        self._is_behind = False
        try:
            await self._durable.write_waiting()
            for session_id in self._durable.take_due_sessions():
                if session_id is None:
                    await self._route()
                elif (agent := sessions.get(session_id)) is not None:
                    self._orchestrator.wake(agent)
        except StorageError:
            # If the disk is full; a database that has stopped feeds no more.
            self._is_behind = self._durable.is_running

    def _delay_ns(self) -> int | None:
        delay_ns = self._durable.due_in_ns()
        if self._is_behind or self._durable.is_behind:
            delay_ns = self._pause_ns if delay_ns is None else min(delay_ns, self._pause_ns)
        return None if delay_ns is None else min(delay_ns, LONGEST_SLEEP_NS)

    async def _feed_after(self, delay_ns: int) -> None:
        try:
            await self._orchestrator.host.clock.sleep(delay_ns)
        except CancelledError:
            return
        self._is_sleeping = False
        try:
            self._is_asked = True
            while self._is_asked and not self._orchestrator.closing:
                self._is_asked = False
                await self._feed()
        finally:
            self._timer = None
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS) if self._is_behind else SECOND_NS
        self.arm()

    # -- routing -------------------------------------------------------------------------

    async def _route(self) -> None:
        """Give the due triggers without a session to the root agent, if there is only one."""
        durable, stores = self._durable, self._durable.stores
        assert stores is not None
        while (agent := self._recipient()) is not None:
            trigger_id = durable.due_trigger(None)
            if trigger_id is None:
                return
            await durable.run(_routing(stores, trigger_id, agent.session_id))
            self._orchestrator.wake(agent)

    def _recipient(self) -> Agent | None:
        orchestrator = self._orchestrator
        served = [
            orchestrator.agents[node.agent_id]
            for node in orchestrator.tree
            if node.parent_id is None
            and orchestrator.durable.sessions.is_served(node.session_id)
            and orchestrator.agents[node.agent_id].history.agent is not None
        ]
        return served[0] if len(served) == 1 else None


def _routing(stores: Stores, trigger_id: str, session_id: str) -> Callable[[Transaction], None]:
    """Return the transaction that gives a trigger to a session, if it is still to be routed."""

    def routed(transaction: Transaction) -> None:
        try:
            claim = stores.triggers.claim(transaction, trigger_id)
        except RowDamaged:
            stores.queue.remove(trigger_id)
            return
        if claim is not None:
            stores.triggers.route(transaction, claim, session_id)

    return routed
