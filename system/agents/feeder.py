"""The feeder: wakes the agents whose triggers are due. One timer, and no polling.

The timer is set for the next trigger that becomes due. Triggers that are due wait in memory until
a turn claims them; the end of a turn, or an opened gate, starts the next turn. The feeder also
delivers the reports of the database, and starts routing.
"""

from __future__ import annotations

from asyncio import CancelledError, Task
from typing import Final

from system.agents.agent_work import under_way
from system.agents.dispatcher import Dispatcher
from system.agents.orchestrator import LONGEST_PAUSE_NS, SECOND_NS
from system.agents.reporting import deliver_reports
from system.agents.routing import Routing
from system.errors import StorageError
from system.router import Router

LONGEST_SLEEP_NS: Final = 600 * SECOND_NS
"""After ten minutes the timer reads the wall clock again, which may have been corrected."""


class Feeder:
    """Feeds the agents of one root from the first call of ``arm`` on."""

    def __init__(self, dispatcher: Dispatcher, router: Router | None, patience_ns: int) -> None:
        self._dispatcher = dispatcher
        self._orchestrator = dispatcher.orchestrator
        self._durable = self._orchestrator.durable
        self._routing = Routing(self._orchestrator, router, patience_ns)
        self._timer: Task[None] | None = None
        self._wakes_ns = 0
        self._is_sleeping = self._is_asked = self._is_behind = False
        self._pause_ns = SECOND_NS

    def arm(self) -> None:
        """Set the timer for the next trigger that becomes due, or the next attempt to write."""
        timer = under_way(self._timer)
        if timer is not None and not self._is_sleeping:
            # When the feeder has fed, it sets the timer itself.
            return
        delay_ns = self._delay_ns()
        if delay_ns is None or self._orchestrator.closing:
            return
        wakes_ns = self._orchestrator.host.clock.monotonic_ns() + delay_ns
        if timer is None or wakes_ns < self._wakes_ns:
            self._begin(delay_ns)

    def _begin(self, delay_ns: int) -> None:
        if (timer := under_way(self._timer)) is not None:
            if not self._is_sleeping:
                self._is_asked = True
                return
            timer.cancel()
        now_ns = self._orchestrator.host.clock.monotonic_ns()
        self._wakes_ns, self._is_sleeping = now_ns + delay_ns, delay_ns > 0
        self._timer = self._orchestrator.task(self._feed_after(delay_ns), "feeder")

    def feed_now(self) -> None:
        """Feed at once, if turns may begin: agents have begun or ended, or the runtime starts."""
        orchestrator = self._orchestrator
        may_feed = orchestrator.take_turns is not None and not orchestrator.closing
        if may_feed and self._durable.stores is not None:
            self._begin(0)

    def stop(self) -> None:
        """Cancel the timer if its time has not come."""
        if self._timer is not None and self._is_sleeping:
            self._timer.cancel()

    def tasks(self) -> list[Task[None]]:
        """Return the tasks that feed and route at this moment, or wait to repeat a write."""
        tasks, timer = self._routing.tasks(), under_way(self._timer)
        if timer is not None and (self._is_refused or not self._is_sleeping):
            tasks.append(timer)
        return tasks

    @property
    def _is_refused(self) -> bool:
        """Whether the disk has refused a write, which is repeated after a pause."""
        return self._routing.is_behind or self._durable.is_behind

    async def _feed(self) -> None:
        """Wake every agent of which a trigger has become due; route those without a session."""
        sessions = self._orchestrator.sessions
        self._is_behind = False
        try:
            await self._durable.write_waiting()
        except (OSError, StorageError):
            # If the disk is full, this is tried again; if the database has stopped, it is not.
            self._is_behind = self._durable.is_behind
        await deliver_reports(self._dispatcher)
        if self._is_behind:
            return
        self._routing.refresh()
        for session_id in self._durable.take_due_sessions():
            if session_id is None:
                self._routing.begin()
            elif (agent := sessions.get(session_id)) is not None:
                self._orchestrator.wake(agent)

    def _delay_ns(self) -> int | None:
        if self._is_behind:
            # Until the disk accepts the work that waits, nothing is fed.
            return self._pause_ns
        if self._durable.has_reports:
            return 0
        delay_ns = self._durable.due_in_ns()
        if self._is_refused:
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
