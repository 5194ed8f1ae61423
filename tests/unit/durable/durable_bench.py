"""A ``state.db`` on a simulated machine, for the tests of durable execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from crash_tests.rig.host import simulated_host
from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from sim.choices import SeededChoices
from sim.disk.crash.survivor_set import SurvivorSet
from sim.world import World
from system.durable.open_state import open_state
from system.durable.seconds import SECOND_NS, SteadyClock, reached_at
from system.durable.state import StateDatabase, Transaction
from system.durable.stores import Stores
from system.durable.task import TASK_EVENTS, TaskEvent
from system.durable.trigger import TRIGGERS, Claim, SessionStatus, Trigger, TriggerSpec
from system.ports import Host, Json

P = ParamSpec("P")
T = TypeVar("T")

ROOT: Final = "r" * 32


def task_events(transaction: Transaction, task_id: str) -> list[TaskEvent]:
    """Return the events of a task in their order, each with a right checksum."""
    numbers = transaction.execute(
        "SELECT seq FROM task_events WHERE task_id=? ORDER BY seq", (task_id,)
    )
    found = [TASK_EVENTS.read(transaction, task_id, int(str(seq))) for (seq,) in numbers]
    return [event for event in found if event is not None]


class KnownSessions:
    """Sessions whose states a test sets; all others are unknown."""

    def __init__(self) -> None:
        self.states = {"s": SessionStatus.LIVING, "other": SessionStatus.LIVING}
        self.messages: set[str] = set()

    def status(self, session_id: str) -> SessionStatus:
        return self.states.get(session_id, SessionStatus.UNKNOWN)

    def has_message(self, session_id: str | None, message_id: str) -> bool:
        del session_id
        return message_id in self.messages


class Bench:
    """One root, boot after boot: its database and its stores."""

    def __init__(self) -> None:
        self.world = World(simulated_host, SeededChoices(1))
        self.sessions = KnownSessions()
        self.host: Host
        self.clock: SteadyClock
        self.state: StateDatabase
        self.stores: Stores
        self.epoch = 0
        self.root_id: str | None = None
        self.boot()

    def boot(self) -> None:
        """Start the machine, open the database, and fill the queue."""
        self.host = self.world.boot()
        self.clock = SteadyClock(self.host.clock)
        self.state = open_state(self.host, self.root_id, self.clock)
        self.root_id = self.state.root_id
        self.epoch += 1
        self.stores = Stores(self.host, self.epoch, self.sessions)
        self.do(self.stores.triggers.load)

    def do(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kw: P.kwargs
    ) -> T:
        """Return ``work`` in a transaction of its own."""
        return self.state.transact(lambda transaction: work(transaction, *args, **kw))

    # -- triggers ------------------------------------------------------------------------

    def emit(
        self, key: str | None = None, source: str = "IMMEDIATE", *, session: str | None = "s",
        fire_at: float | None = None, priority: int | None = None, payload: Json = "body",
    ) -> str:  # fmt: skip
        """Emit a trigger; return the id of the one that holds its key."""
        spec = TriggerSpec(source, payload, "about it", session, fire_at, key, priority)
        return self.do(self.stores.emitter.emit, spec).trigger_id

    def row(self, trigger_id: str) -> Trigger:
        """Return a trigger as the database has it."""
        found = self.do(TRIGGERS.read, trigger_id)
        assert found is not None
        return found

    def claim(self, trigger_id: str) -> Claim:
        """Claim a trigger that can be claimed."""
        claim = self.do(self.stores.triggers.claim, trigger_id)
        assert claim is not None
        return claim

    def due(self, session: str | None = "s") -> str | None:
        """Return the trigger that the queue would give to a session now."""
        return self.stores.queue.next_of(session, reached_at(self.clock.now_ns()))

    @property
    def now(self) -> float:
        """The time in seconds since 1970."""
        return reached_at(self.clock.now_ns())

    def kill(self) -> None:
        """Kill the process and start it again."""
        self.world.kill()
        self.boot()

    def cut_power(self) -> None:
        """Lose all that was not durable, and start again."""
        lost = tuple(range(len(self.world.disk.unsynced().micros)))
        self.world.cut_power(SurvivorSet(lost=lost))
        self.boot()

    def fail(self, plan: str) -> FaultInjector:
        """Let calls of the disk fail from now on; return the injector."""
        injector = FaultInjector(FaultPlan.parse(plan))
        injector.install(self.world.disk)
        return injector

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.world.clock.advance(round(seconds * SECOND_NS))
