"""One root that is crashed at one exact operation, with every survivor set, and booted again.

Its provider is an agentic service, which keeps its conversations across the crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_ledger import ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedAgentService
from crash_tests.targets.script import ScriptedAgent
from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from oracles.recording.turn_records import check_turn_records
from sim.choices import PlainChoices
from sim.disk.cache.operation import Operation, Rename, Sync, Write
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World
from system.agents.view import AgentView
from system.ports import Host
from system.providers.agentic import AgenticProvider
from system.runtime import Options, Runtime
from system.storage.line import Line, decode_line

MOST_SURVIVOR_SETS = 64
"""If there are more, only the two extreme ones are tried: all operations lost, all kept."""


class Stage:
    """One root; ``runtime`` belongs to the current lifetime, ``service`` to all of them.

    If executions are recorded, each recovery must leave the record of every committed turn.
    """

    def __init__(self, options: Options) -> None:
        self.world = World(simulated_host, PlainChoices())
        self.service = SimulatedAgentService(ProviderLedger(), ScriptedAgent())
        self.providers = {"agentic": AgenticProvider(self.service)}
        self.options = options
        self.host: Host
        self.runtime: Runtime
        self.boot()
        self.start()

    def boot(self) -> None:
        """Begin a lifetime and recover; no turn runs yet."""
        self.host = self.world.boot()
        self.runtime = self.run(Runtime.recover(self.host, self.providers, self.options))
        if self.options.recording is not None:
            files = self.world.disk.snapshot().files()
            check_turn_records({path[1:]: content for path, content in files.items()})

    def start(self) -> None:
        """Start the turns."""

        async def begin() -> None:
            self.runtime.start()

        self.run(begin())

    def run(self, work: Any) -> Any:
        """Run the loop until ``work`` is done; return its result."""
        return self.world.loop.run_until_complete(work)

    def settle(self) -> None:
        """Run all ready tasks, and check that none of them has failed."""
        self.world.loop.advance(0)
        assert self.runtime.failures == []
        self.world.loop.raise_unhandled()

    def create(self, name: str = "Ada") -> str:
        """Create a root agent; the id of its request is its name."""
        created = self.runtime.create_agent(name, provider="agentic", request_id=name)
        return str(self.run(created))

    def say(self, agent_id: str, *do: list[Any], message_id: str | None = None) -> str:
        """Send a script, and run all ready tasks."""
        sent = str(self.run(self.runtime.send(agent_id, {"do": list(do)}, message_id)))
        self.settle()
        return sent

    def named(self, name: str) -> AgentView:
        """Return the view of the newest agent of this name."""
        return [agent for agent in self.runtime.view().agents if agent.name == name][-1]

    def lines(self, session_id: str) -> list[Line]:
        """Return the lines of a session's log on the disk."""
        path = f"/agents/{session_id}/events.jsonl"
        content = self.world.disk.snapshot().files()[path]
        return [decode_line(line, session_id, path) for line in content.split(b"\n")[:-1]]

    def data(self, session_id: str, event: str) -> list[dict[str, Any]]:
        """Return the data of the lines of one event in a session's log."""
        return [line.data for line in self.lines(session_id) if line.event == event]

    def events(self, session_id: str) -> list[str]:
        """Return the names of the events in a session's log."""
        return [line.event for line in self.lines(session_id)]

    def sessions(self) -> list[str]:
        """Return the names in ``agents``, including empty directories."""
        return [path[8:] for path, _ in self.world.disk.snapshot().tree() if _is_session(path)]


def _is_session(path: str) -> bool:
    return path.startswith("/agents/") and path.count("/") == 2


class Moment(NamedTuple):
    """A crash in this phase of operation ``number``, from 1, of an act."""

    number: int
    phase: Phase


Moments: TypeAlias = Callable[[Sequence[Operation]], Sequence[Moment]]
"""Chooses the moments from the operations of an uncrashed act."""


@dataclass(frozen=True)
class Act:
    """``prepare`` runs to its end; ``perform`` is crashed at each of ``moments``."""

    prepare: Callable[[Stage], object]
    perform: Callable[[Stage], object]
    moments: Moments

    def crashes(self, options: Options) -> Iterator[Stage]:
        """Yield a recovered stage for each moment and each crash in it."""
        for moment in self.moments(self._operations(options)):
            crashed = self._crashed(options, moment)
            survivor_sets = _survivor_sets(crashed.world.disk)
            crashed.world.kill()
            crashed.boot()
            yield crashed
            for survivors in survivor_sets:
                crashed = self._crashed(options, moment)
                crashed.world.cut_power(survivors)
                crashed.boot()
                yield crashed

    def _operations(self, options: Options) -> Sequence[Operation]:
        stage = Stage(options)
        self.prepare(stage)
        before = stage.world.disk.operations
        self.perform(stage)
        operations = stage.world.disk.journal[before:]
        stage.world.kill()
        return operations

    def _crashed(self, options: Options, moment: Moment) -> Stage:
        stage = Stage(options)
        self.prepare(stage)
        disk = stage.world.disk
        counter = CrashCounter(disk, moment.number, moment.phase)
        disk.interposer = counter
        with suppress(SimulatedCrash, PowerOff):
            self.perform(stage)
        assert counter.hit is not None
        return stage


def _survivor_sets(disk: Disk) -> list[SurvivorSet]:
    space = StateSpace(disk.unsynced())
    states = list(islice(space.all(), MOST_SURVIVOR_SETS))
    if space.complete:
        return [state.survivors for state in states]
    return [SurvivorSet(), SurvivorSet(lost=tuple(range(len(space.micros))))]


# -- moments -------------------------------------------------------------------------------


def writes(operations: Sequence[Operation], event: str) -> int:
    """Return the number of the first operation that writes a line of this event."""
    member = f'"event":"{event}"'.encode()
    return next(
        number
        for number, operation in enumerate(operations, 1)
        if isinstance(operation, Write) and member in operation.data
    )


def renames(operations: Sequence[Operation], name: str) -> int:
    """Return the number of the first operation that renames a file to ``name``."""
    return next(
        number
        for number, operation in enumerate(operations, 1)
        if isinstance(operation, Rename) and operation.to_name == name
    )


def barrier_after(operations: Sequence[Operation], number: int) -> int:
    """Return the number of the first barrier after operation ``number``."""
    return next(
        later
        for later, operation in enumerate(operations, 1)
        if later > number and isinstance(operation, Sync)
    )


def durable(operations: Sequence[Operation], event: str) -> int:
    """Return the number of the barrier that makes the first line of this event durable.

    With the framing ``pending`` that is the barrier on the directory of the entry.
    """
    written = writes(operations, event)
    barrier = barrier_after(operations, written)
    if operations[written - 1].path.endswith("events.pending"):
        return barrier_after(operations, barrier)
    return barrier
