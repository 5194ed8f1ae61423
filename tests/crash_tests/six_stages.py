"""H-4: crash recovery in six stages, from the top of this file to its end.

1 generate a list of operations · 2 execute them with the real code · 3 crash after a random
prefix of the disk's operations · 4 recover · 5 replay what was acknowledged on a shadow ·
6 the recovered root holds all that was acknowledged, and beyond that only what was in flight.

A state is a set of facts: tuples that say which agent there is, which message stands in whose
log, which was delivered, who has ended. Every operation has a number, which is in all that it
makes, so no two operations make the same fact.
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
from oracles.runtime.log_records import USER
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.violation import Duplicated, LostAck, Phantom
from sim.choices import PlainChoices, SeededChoices
from sim.disk.crash.choose_survivors import choose_survivors
from sim.disk.crash.persistence import PersistenceModel
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World
from system.providers.bare import BareProvider
from system.runtime import Options, Runtime
from system.storage.framing import Framing

Fact = tuple[str, ...]

PROVIDER = "bare"
SLOTS = 2

# -- 1: generate -------------------------------------------------------------------------


class Wish(NamedTuple):
    """What is to be done, before anybody knows who there will be: places among the living."""

    what: str
    who: int
    whom: int


@dataclass(frozen=True, slots=True)
class Crash:
    """In which operation of the disk, counted round and round; how, and what is left."""

    operation: int
    phase: Phase
    is_power_cut: bool
    survivors: int


PLACES = integers(0, 4)
WISHES: SearchStrategy[list[Wish]] = lists(
    builds(Wish, sampled_from(("create", "send", "spawn", "tell", "terminate")), PLACES, PLACES),
    min_size=1,
    max_size=12,
)
CRASHES = builds(Crash, integers(0, 500), sampled_from(Phase), booleans(), integers(0, 255))


class Operation(NamedTuple):
    """What is done to the agent ``name``; ``other`` is whom that one spawns or tells."""

    number: int
    what: str
    name: str
    other: str = ""

    @property
    def payload(self) -> Any:
        """What the agent is sent: a play for one who spawns or tells, a text for the others."""
        match self.what:
            case "spawn":
                call = ["spawn_agent", {"name": self.other, "instructions": self.instructions}]
            case "tell":
                call = ["send_message", {"to": self.other, "payload": self.told}]
            case _:
                return f"letter {self.number}"
        return {"do": [call], "say": f"done {self.number}"}

    @property
    def instructions(self) -> str:
        return f"you are {self.other}"

    @property
    def told(self) -> str:
        return f"told in {self.number}"


def operations_of(wishes: Sequence[Wish]) -> Iterator[Operation]:
    """Turn wishes into operations that are possible, one after the other."""
    shadow = Shadow()
    for number, wish in enumerate(wishes):
        living = list(shadow.parents)
        if wish.what == "create" or not living:
            operation = Operation(number, "create", f"root {number}")
        else:
            name = living[wish.who % len(living)]
            near = shadow.near(name)
            match wish.what:
                case "spawn":
                    operation = Operation(number, "spawn", name, f"child {number}")
                case "tell":
                    operation = Operation(number, "tell", name, near[wish.whom % len(near)])
                case "terminate" if not shadow.children(name):
                    operation = Operation(number, "terminate", name)
                case _:
                    operation = Operation(number, "send", name)
        shadow.happen(operation)
        yield operation


# -- 2 and 3: execute, and crash ---------------------------------------------------------


class Life:
    """The lifetimes of one root: the real runtime on a simulated disk."""

    def __init__(self, model: PersistenceModel, framing: Framing) -> None:
        self.world = World(simulated_host, PlainChoices(), model)
        self._provider = BareProvider(SimulatedModel(ProviderLedger(), ScriptedAgent()))
        self._options = Options(SLOTS, framing)
        self.boot()

    def boot(self) -> None:
        host = self.world.boot()
        recover = Runtime.recover(host, {PROVIDER: self._provider}, self._options)
        self._runtime = self.world.loop.run_until_complete(recover)

    def execute(self, operations: Sequence[Operation]) -> int:
        """Do each until all is idle; return how many were done when it ended, or crashed."""
        self._runtime.start()
        done = 0
        try:
            for operation in operations:
                self.world.loop.run_until_complete(self._perform(operation))
                self.world.loop.run_until_idle()
                done += 1
        except (SimulatedCrash, PowerOff):
            return done
        assert self._runtime.failures == []
        return done

    async def _perform(self, operation: Operation) -> None:
        runtime, name = self._runtime, operation.name
        if operation.what == "create":
            await runtime.create_agent(name, provider=PROVIDER)
            return
        ids = {look.name: look.agent_id for look in runtime.view().agents}
        if operation.what == "terminate":
            await runtime.terminate(ids[name])
        else:
            await runtime.send(ids[name], operation.payload)

    def end(self, crash: Crash) -> None:
        """Let the process die, or the machine."""
        if crash.is_power_cut:
            ordering = self.world.disk.unsynced().ordering
            self.world.cut_power(choose_survivors(SeededChoices(crash.survivors), ordering))
        else:
            self.world.kill()

    def facts(self) -> set[Fact]:
        """Return what the disk holds, read by the oracle's own reader."""
        files = self.world.disk.files()
        return facts_of(
            RootSnapshot.of_files({path[1:]: content for path, content in files.items()})
        )


# -- 4: recover --------------------------------------------------------------------------


def facts_of(snapshot: RootSnapshot) -> set[Fact]:
    """Return what the logs of a root say, but for what the runtime tells of its own accord."""
    facts: list[Fact] = []
    names = {USER: USER, **{key: f.agent.name for key, f in snapshot.agents.items() if f.agent}}
    for state in (*snapshot.agents.values(), snapshot.user):
        name = names[state.agent_id or USER]
        if state.agent is not None:
            parent = snapshot.sessions.get(state.agent.parent_session_id or "")
            facts.append(("agent", name, names[parent.state.agent_id] if parent else ""))
        if state.ended:
            facts.append(("ended", name))
        for message in state.enqueued.values():
            if message.kind != "system":
                letter = (names[message.sender], name, _canonical(message.payload))
                facts.append(("enqueued", *letter))
                if message.message_id in state.delivered:
                    facts.append(("delivered", *letter))
    if len(facts) != len(set(facts)):
        raise Duplicated("a fact is there twice", facts=sorted(facts))
    return set(facts)


def _canonical(payload: Any) -> str:
    return json.dumps(payload, sort_keys=True)


# -- 5: replay on the shadow -------------------------------------------------------------


@dataclass(slots=True)
class Shadow:
    """What there must be: ``parents`` of the living by their names, and all ``facts``."""

    parents: dict[str, str] = field(default_factory=dict)
    facts: set[Fact] = field(default_factory=set)

    def children(self, name: str) -> list[str]:
        return [child for child, parent in self.parents.items() if parent == name]

    def near(self, name: str) -> list[str]:
        """Return whom an agent may write to: parent or USER, children, siblings."""
        parent = self.parents[name]
        siblings = [other for other in self.children(parent) if other != name] if parent else []
        return [parent or USER, *self.children(name), *siblings]

    def happen(self, operation: Operation) -> None:
        """Let an operation happen, with everything that follows from it."""
        _, what, name, other = operation
        if what == "create":
            self._born(name, "")
        elif what == "terminate":
            del self.parents[name]
            self.facts.add(("ended", name))
        else:
            self._delivered(USER, name, operation.payload)
        if what == "spawn":
            self._born(other, name)
            self._delivered(name, other, operation.instructions)
        elif what == "tell":
            self._delivered(name, other, operation.told)

    def _born(self, name: str, parent: str) -> None:
        self.parents[name] = parent
        self.facts.add(("agent", name, parent))

    def _delivered(self, sender: str, recipient: str, payload: Any) -> None:
        letter = (sender, recipient, _canonical(payload))
        self.facts.add(("enqueued", *letter))
        if recipient != USER:
            # USER has seen a message when the operator says so, which nobody does here.
            self.facts.add(("delivered", *letter))


def replayed(operations: Sequence[Operation]) -> set[Fact]:
    shadow = Shadow()
    for operation in operations:
        shadow.happen(operation)
    return shadow.facts


# -- 6: the allowed subset ---------------------------------------------------------------


def check_allowed(recovered: set[Fact], acknowledged: set[Fact], in_flight: set[Fact]) -> None:
    """Raise unless acknowledged ⊆ recovered ⊆ acknowledged ∪ in flight."""
    if lost := acknowledged - recovered:
        raise LostAck("acknowledged facts are gone", lost=sorted(lost))
    if invented := recovered - acknowledged - in_flight:
        raise Phantom("there are facts that nobody made", invented=sorted(invented))


# -- all six -----------------------------------------------------------------------------


def six_stages(
    wishes: Sequence[Wish], crash: Crash, model: PersistenceModel, framing: Framing
) -> None:
    """Go through all of them; raise a ``Violation``."""
    operations = list(operations_of(wishes))

    whole = Life(model, framing)
    begun = whole.world.disk.operations
    assert whole.execute(operations) == len(operations)
    check_allowed(whole.facts(), replayed(operations), set())
    taken = whole.world.disk.operations - begun

    crashed = Life(model, framing)
    disk = crashed.world.disk
    disk.interposer = CrashCounter(disk, 1 + crash.operation % taken, crash.phase)
    done = crashed.execute(operations)
    crashed.end(crash)

    crashed.boot()

    acknowledged = replayed(operations[:done])
    in_flight = replayed(operations[: done + 1])
    check_allowed(crashed.facts(), acknowledged, in_flight)
