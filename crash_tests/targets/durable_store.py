"""The database of durable execution and its shadow, without actions: boots, clocks, checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from crash_tests.rig.effect_ledger import Answer, EffectLedger
from crash_tests.targets.system_target import SystemTarget
from oracles.durable.differences import SLACK_S
from oracles.durable.marks import (
    ACK_REDONE,
    CRASHED_EFFECT,
    DEAD_BY_RECLAIM,
    PAUSE_CUT,
    RECLAIMED,
    REPEATED_KEY,
    STOPPED,
    TASK_BLOCKED,
    TASK_RESUMED,
    UNCERTAIN,
)
from oracles.durable.rows import Rows, read_rows
from oracles.durable.shadow_durable import ShadowDurable
from oracles.durable.shadow_effects import ShadowEffects
from oracles.durable.shadow_state import State
from oracles.marks import IN_FLIGHT_KEPT, IN_FLIGHT_LOST
from oracles.violation import FalseAlarm
from powercut.fuzz.action import Arguments
from powercut.fuzz.fault_families import DAMAGE, FaultFamily
from sim.world import World
from system.durable.activity_runner import ActivityRunner
from system.durable.errors import StateDamaged, StateStopped
from system.durable.open_state import open_state
from system.durable.seconds import SteadyClock
from system.durable.state import StateDatabase, Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.stores import Recovered, Stores
from system.durable.trigger import Claim, SessionStatus, TriggerStatus
from system.errors import StorageError, StorageFull
from system.ports import Host

T = TypeVar("T")

SESSIONS: Final = ("a", "b")
"""The first sessions; a session that ends is replaced by a new one."""
ROUTER: Final = ""
"""The name under which the triggers without a session are claimed."""
MOST_ATTEMPTS: Final = 2
SECOND_NS: Final = 10**9


class KnownSessions:
    """The living sessions and those that have ended; implements ``Sessions``.

    Their logs are durable, so the names survive every crash.
    """

    def __init__(self) -> None:
        self.living = list(SESSIONS)
        self.ended: list[str] = []
        self.inboxes: set[str] = set()

    def status(self, session_id: str) -> SessionStatus:
        """Return whether it lives."""
        return SessionStatus.LIVING if session_id in self.living else SessionStatus.ENDED

    def has_message(self, session_id: str | None, message_id: str) -> bool:
        """Return whether a message has arrived, or its session has ended."""
        return session_id in self.ended or message_id in self.inboxes

    def end(self, session: str) -> None:
        """End a session, and begin another one in its place."""
        following = chr(ord(SESSIONS[-1]) + len(self.ended) + 1)
        self.living[self.living.index(session)] = following
        self.ended.append(session)


class DurableStore(SystemTarget):
    """The database, its stores, and all other state that survives a crash of the machine.

    ``_lines`` are the last lines of the sessions' logs, durable before they are applied.
    ``_claims`` belong to this lifetime, ``_stale`` to earlier lifetimes. ``_latest`` is the latest
    time of earlier boots since the effects were checked.
    """

    families_left_out: Mapping[FaultFamily, str] = MappingProxyType(
        {**DAMAGE, FaultFamily.CLOCK: "its own actions step the clock, between transactions"}
    )
    changed_by_boot = frozenset(("/state.db", "/state.db-wal", "/state.db-shm"))

    def __init__(self) -> None:
        self._shadow = ShadowDurable(self._now)
        self._effects = ShadowEffects()
        self._root_id: str | None = None
        self._epoch = 0
        self._number = 0
        self._seqs: Counter[str] = Counter()
        self._sessions = KnownSessions()
        self._lines: dict[str, StateOutbox] = {}
        self._claims: dict[str, Claim] = {}
        self._stale: list[Claim] = []
        self._open = False
        self._recovering_from: float | None = None
        self._latest = 0.0
        self._offset_ns = 0
        self._world: World[Host]
        self._host: Host
        self._ledger: EffectLedger
        self._clock: SteadyClock
        self._state: StateDatabase
        self._stores: Stores
        self._recovered: Recovered

    def attach(self, world: World[Host]) -> None:
        """Keep the world."""
        self._world = world
        self._ledger = EffectLedger(lambda: world.clock.now_ns)

    # -- time ----------------------------------------------------------------------------

    def _now(self) -> float:
        """Return the time that the system must use, without a step back during a boot."""
        clock = self._world.clock
        return max(clock.now_ns + self._offset_ns, clock.wall_now_ns) / SECOND_NS

    # -- boots ---------------------------------------------------------------------------

    def recover(self, host: Host) -> None:
        """Open the database, apply the outboxes of the durable lines, recover the other rows."""
        self._host = host
        self._open = False
        self._epoch += 1
        clock = self._world.clock
        self._latest = max(self._latest, self._now())
        self._offset_ns = clock.wall_now_ns - clock.now_ns
        self._stale += self._claims.values()
        self._claims.clear()
        if self._recovering_from is None or self._now() < self._recovering_from:
            self._recovering_from = self._now()
        self._clock = SteadyClock(host.clock)
        self._state = open_state(host, self._root_id, self._clock)
        self._root_id = self._state.root_id
        self._stores = Stores(host, self._epoch, self._sessions, MOST_ATTEMPTS)
        self._recovered = self._state.transact(self._recover)
        resumed = self._state.transact(
            lambda transaction: self._stores.tasks.resume(transaction, lambda _: True)
        )
        if resumed:
            self.marks.reach(TASK_RESUMED)
        self._open = True

    def _recover(self, transaction: Transaction) -> Recovered:
        for outbox in self._lines.values():
            if self._stores.apply(transaction, outbox):
                self.marks.reach(ACK_REDONE)
        for session in self._sessions.ended:
            self._stores.end_session(transaction, session)
        return self._stores.recover(transaction, lambda _: True)

    def check_recovered(self) -> None:
        """Check all rows, and the effects."""
        rows = self._rows()
        if rows is None:
            return
        self._effects.crash()
        doubtful = not self._shadow.settled
        assert self._recovering_from is not None
        began, now = self._recovering_from, self._now()

        def recovered(state: State) -> State:
            again = state.recovered(now, MOST_ATTEMPTS)
            # A sum of floats may be less than the exact time.
            return again.resumed(began, now - began + SLACK_S)

        happened = self._shadow.settle(rows, recovered, began)
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        self._recovering_from = None
        self._mark_recovery()
        self._check_effects(rows)

    def _reopen(self, _arguments: Arguments) -> str:
        """Close the database and open it again."""
        self._state.close()
        try:
            self.recover(self._host)
        except (OSError, StorageError):
            if not self.fault_plan:
                raise
            self._open = False
            return "refused"
        self.check_recovered()
        return "reopened"

    def _is_open(self) -> bool:
        return self._open

    def _mark_recovery(self) -> None:
        for trigger in self._recovered.reclaimed:
            is_dead = trigger.status is TriggerStatus.DEAD
            self.marks.reach(DEAD_BY_RECLAIM if is_dead else RECLAIMED)
        if self._recovered.cut:
            self.marks.reach(PAUSE_CUT)
        if self._recovered.damaged:
            raise FalseAlarm("a recovery reports damage", rows=self._recovered.damaged)
        if any(task.status == "BLOCKED" for task in self._shadow.state.tasks.values()):
            self.marks.reach(TASK_BLOCKED)

    # -- transactions --------------------------------------------------------------------

    def _do(self, work: Callable[[Transaction], T], *after: State) -> T | None:
        """Return the result of a transaction that leaves one of these states.

        Returns None if the disk has refused it.
        """
        self._shadow.begin(*after)
        try:
            result = self._state.transact(work)
        except StorageError as refused:
            self._refuse(refused)
            return None
        self._acknowledge()
        return result

    def _refuse(self, refused: StorageError) -> None:
        """Record a refusal; a stopped database is opened again by the next action."""
        is_unread = isinstance(refused, StateDamaged) and self.fault_plan
        if isinstance(refused, StorageFull) or is_unread:
            self._shadow.refuse()
        elif isinstance(refused, StateStopped):
            self.marks.reach(STOPPED)
            self._open = False
        else:
            raise FalseAlarm("the database reports damage", raised=repr(refused)) from None
        if not self.fault_plan:
            raise FalseAlarm("no fault is active", raised=repr(refused)) from None

    def _acknowledge(self) -> None:
        """Check the rows after a transaction that has returned."""
        rows = self._rows()
        if rows is None:
            self._shadow.return_unread()
        else:
            self._shadow.acknowledge(rows)
            self._check_effects(rows)

    def _rows(self) -> Rows | None:
        """Read all rows; return None if a fault prevents it, and then open the database again."""
        try:
            return self._state.transact(lambda transaction: read_rows(transaction.execute))
        except StorageError:
            if not self.fault_plan:
                raise
            self._open = False
            return None

    def _run(self, main: Coroutine[Any, Any, T]) -> T:
        return self._world.loop.run_until_complete(main)

    # -- effects -------------------------------------------------------------------------

    def _runner(self) -> ActivityRunner:
        return ActivityRunner(
            self._state, self._stores.activities, self._ledger, self._host.clock, self._host.ids
        )

    def _plan_answers(self, answers: list[str]) -> None:
        self._ledger.answers[:] = [Answer(each) for each in answers]

    def _check_effects(self, rows: Rows) -> None:
        ledger = self._ledger
        ledger.check()
        for key in ledger.doubted:
            self._effects.doubt(key)
        for key in ledger.refused:
            self._effects.refuse(key)
        ledger.doubted.clear()
        ledger.refused.clear()
        # After a step back, an outcome may be from the boot before.
        self._effects.check(rows, ledger.effects, ledger.requests, max(self._latest, self._now()))
        self._latest = 0.0
        for key, row in rows.activities.items():
            if row["status"] == "UNCERTAIN":
                self.marks.reach(UNCERTAIN)
            if key in ledger.unanswered and row["status"] != "DONE":
                self.marks.reach(CRASHED_EFFECT)
            if ledger.requests[key] > 1:
                self.marks.reach(REPEATED_KEY)
        ledger.unanswered.clear()
