"""Crash recovery in six stages, in the order of this file.

1. Generate a list of calls.
2. Execute them with the real runtime.
3. Crash it after a random prefix of the disk's operations.
4. Recover.
5. Replay the acknowledged calls on a shadow.
6. The recovered root holds all acknowledged events, and beyond them only events in flight.

A state is a set of events, which are tuples: an agent exists, a message is in the log of an
agent, a message is delivered, an agent has ended. The number of a call is part of its events, so
no two calls cause the same event. If executions are recorded, every committed turn has a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis.strategies import SearchStrategy, booleans, builds, integers, lists, sampled_from

from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_ledger import ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedModel
from crash_tests.targets.script import ScriptedAgent
from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from oracles.recording.turn_records import check_turn_records
from oracles.runtime.log_records import USER
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.violation import Duplicated, LostAck, Phantom
from sim.choices import PlainChoices, SeededChoices
from sim.disk.crash.choose_survivors import choose_survivors
from sim.disk.crash.persistence import PersistenceModel
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World
from system.agents.turn_recorder import RecordingOptions
from system.providers.bare import BareProvider
from system.runtime import Options, Runtime
from system.storage.framing import Framing

Event = tuple[str, ...]

PROVIDER = "bare"
OPTIONS = {
    framing.value + suffix: Options(2, framing, recording=recording)
    for framing in Framing
    for suffix, recording in (("", None), (" recorded", RecordingOptions()))
}
"""Both framings, with executions recorded and not."""

# -- 1: generate -------------------------------------------------------------------------


class Wish(NamedTuple):
    """A call whose agents are places in the list of the living ones, which is not known yet."""

    verb: str
    agent: int
    other: int


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash in operation ``operation``, modulo the number of all; ``survivors`` is a seed."""

    operation: int
    phase: Phase
    is_power_cut: bool
    survivors: int


PLACES = integers(0, 4)
WISHES: SearchStrategy[list[Wish]] = lists(
    builds(Wish, sampled_from(("create", "send", "spawn", "write", "terminate")), PLACES, PLACES),
    min_size=1,
    max_size=12,
)
CRASHES = builds(Crash, integers(0, 500), sampled_from(Phase), booleans(), integers(0, 255))


class Call(NamedTuple):
    """A call for the agent ``name``, which may spawn ``other`` or write to it."""

    number: int
    verb: str
    name: str
    other: str = ""

    @property
    def payload(self) -> Any:
        """The payload of the message: a script for ``spawn`` and ``write``, else a text."""
        match self.verb:
            case "spawn":
                call = ["spawn_agent", {"name": self.other, "instructions": self.instructions}]
            case "write":
                call = ["send_message", {"to": self.other, "payload": self.text}]
            case _:
                return f"letter {self.number}"
        return {"do": [call], "say": f"done {self.number}"}

    @property
    def instructions(self) -> str:
        return f"you are {self.other}"

    @property
    def text(self) -> str:
        return f"written in {self.number}"


def calls_of(wishes: Sequence[Wish]) -> Iterator[Call]:
    """Turn wishes into calls that are possible, one after the other."""
    shadow = Shadow()
    for number, wish in enumerate(wishes):
        living = list(shadow.parents)
        if wish.verb == "create" or not living:
            call = Call(number, "create", f"root {number}")
        else:
            name = living[wish.agent % len(living)]
            near = shadow.near(name)
            match wish.verb:
                case "spawn":
                    call = Call(number, "spawn", name, f"child {number}")
                case "write":
                    call = Call(number, "write", name, near[wish.other % len(near)])
                case "terminate" if not shadow.children(name):
                    call = Call(number, "terminate", name)
                case _:
                    call = Call(number, "send", name)
        shadow.happen(call)
        yield call


# -- 2 and 3: execute, and crash ---------------------------------------------------------


class Root:
    """One root over several lifetimes: the real runtime on a simulated disk."""

    def __init__(self, model: PersistenceModel, options: Options) -> None:
        self.world = World(simulated_host, PlainChoices(), model)
        self._provider = BareProvider(SimulatedModel(ProviderLedger(), ScriptedAgent()))
        self._options = options
        self.boot()

    def boot(self) -> None:
        host = self.world.boot()
        recover = Runtime.recover(host, {PROVIDER: self._provider}, self._options)
        self._runtime = self.world.loop.run_until_complete(recover)

    def execute(self, calls: Sequence[Call]) -> int:
        """Make each call and run until idle; return the number of calls before a crash."""
        self._runtime.start()
        done = 0
        try:
            for call in calls:
                self.world.loop.run_until_complete(self._perform(call))
                self.world.loop.run_until_idle()
                done += 1
        except (SimulatedCrash, PowerOff):
            return done
        assert self._runtime.failures == []
        return done

    async def _perform(self, call: Call) -> None:
        runtime, name = self._runtime, call.name
        if call.verb == "create":
            await runtime.create_agent(name, provider=PROVIDER)
            return
        ids = {agent.name: agent.agent_id for agent in runtime.view().agents}
        if call.verb == "terminate":
            await runtime.terminate(ids[name])
        else:
            await runtime.send(ids[name], call.payload)

    def end(self, crash: Crash) -> None:
        """Kill the process, or cut the power."""
        if crash.is_power_cut:
            ordering = self.world.disk.unsynced().ordering
            self.world.cut_power(choose_survivors(SeededChoices(crash.survivors), ordering))
        else:
            self.world.kill()

    def events(self) -> set[Event]:
        """Return the events on the disk, as the oracle's own reader finds them."""
        return events_of(RootSnapshot.of_files(self._files()))

    def check_records(self) -> None:
        """Check that every committed turn has its record, if executions are recorded."""
        if self._options.recording is not None:
            check_turn_records(self._files())

    def _files(self) -> dict[str, bytes]:
        return {path[1:]: content for path, content in self.world.disk.files().items()}


# -- 4: recover --------------------------------------------------------------------------


def events_of(snapshot: RootSnapshot) -> set[Event]:
    """Return the events in the logs of a root, without the messages of the runtime itself."""
    events: list[Event] = []
    names = {USER: USER, **{key: f.agent.name for key, f in snapshot.agents.items() if f.agent}}
    for state in (*snapshot.agents.values(), snapshot.user):
        name = names[state.agent_id or USER]
        if state.agent is not None:
            parent = snapshot.sessions.get(state.agent.parent_session_id or "")
            events.append(("agent", name, names[parent.state.agent_id] if parent else ""))
        if state.ended:
            events.append(("ended", name))
        for message in state.enqueued.values():
            if message.kind != "system":
                letter = (names[message.sender], name, _canonical(message.payload))
                events.append(("enqueued", *letter))
                if message.message_id in state.delivered:
                    events.append(("delivered", *letter))
    if len(events) != len(set(events)):
        raise Duplicated("an event was recovered twice", events=sorted(events))
    return set(events)


def _canonical(payload: Any) -> str:
    return json.dumps(payload, sort_keys=True)


# -- 5: replay on the shadow -------------------------------------------------------------


@dataclass(slots=True)
class Shadow:
    """The expected state: the ``parents`` of the living agents by name, and all ``events``."""

    parents: dict[str, str] = field(default_factory=dict)
    events: set[Event] = field(default_factory=set)

    def children(self, name: str) -> list[str]:
        return [child for child, parent in self.parents.items() if parent == name]

    def near(self, name: str) -> list[str]:
        """Return the agents that an agent may address: parent or USER, children, siblings."""
        parent = self.parents[name]
        siblings = [other for other in self.children(parent) if other != name] if parent else []
        return [parent or USER, *self.children(name), *siblings]

    def happen(self, call: Call) -> None:
        """Apply a call with all its effects."""
        _, verb, name, other = call
        if verb == "create":
            self._create(name, "")
        elif verb == "terminate":
            del self.parents[name]
            self.events.add(("ended", name))
        else:
            self._deliver(USER, name, call.payload)
        if verb == "spawn":
            self._create(other, name)
            self._deliver(name, other, call.instructions)
        elif verb == "write":
            self._deliver(name, other, call.text)

    def _create(self, name: str, parent: str) -> None:
        self.parents[name] = parent
        self.events.add(("agent", name, parent))

    def _deliver(self, sender: str, recipient: str, payload: Any) -> None:
        letter = (sender, recipient, _canonical(payload))
        self.events.add(("enqueued", *letter))
        if recipient != USER:
            # Messages to USER are delivered when the operator acknowledges them.
            self.events.add(("delivered", *letter))


def replayed(calls: Sequence[Call]) -> set[Event]:
    shadow = Shadow()
    for call in calls:
        shadow.happen(call)
    return shadow.events


# -- 6: compare --------------------------------------------------------------------------


def check_allowed(recovered: set[Event], acknowledged: set[Event], in_flight: set[Event]) -> None:
    """Raise unless acknowledged ⊆ recovered ⊆ acknowledged ∪ in flight."""
    if lost := acknowledged - recovered:
        raise LostAck("acknowledged events are lost", lost=sorted(lost))
    if invented := recovered - acknowledged - in_flight:
        raise Phantom("events were recovered that no call has caused", invented=sorted(invented))


# -- all stages --------------------------------------------------------------------------


def six_stages(
    wishes: Sequence[Wish], crash: Crash, model: PersistenceModel, options: Options
) -> None:
    """Go through all stages; raise a ``Violation``."""
    calls = list(calls_of(wishes))

    uncrashed = Root(model, options)
    begun = uncrashed.world.disk.operations
    assert uncrashed.execute(calls) == len(calls)
    check_allowed(uncrashed.events(), replayed(calls), set())
    taken = uncrashed.world.disk.operations - begun

    crashed = Root(model, options)
    disk = crashed.world.disk
    disk.interposer = CrashCounter(disk, 1 + crash.operation % taken, crash.phase)
    done = crashed.execute(calls)
    crashed.end(crash)

    crashed.boot()

    acknowledged = replayed(calls[:done])
    in_flight = replayed(calls[: done + 1])
    check_allowed(crashed.events(), acknowledged, in_flight)
    crashed.check_records()
