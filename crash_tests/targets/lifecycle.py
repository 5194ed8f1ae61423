"""Agents that come, work and go while nothing crashes: the orchestrator's bookkeeping (H-3).

Five names, so that agents collide; three slots, so that conversations are suspended and taken
up again. After every step all is idle, and whatever keeps agents must agree (V-7).
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from crash_tests.rig.agent_service import SimulatedAgentService
from crash_tests.rig.provider_ledger import ProviderLedger
from crash_tests.targets.report import check_report
from crash_tests.targets.schedule import schedule
from crash_tests.targets.script import NAMES, ScriptedAgent
from crash_tests.targets.system_target import SystemTarget
from oracles.runtime.root_snapshot import SnapshotReader
from oracles.runtime.shadow_tree import Registries, ShadowTree
from oracles.violation import Starved
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.sample_texts import text
from sim.choices import Choices, Diverged
from sim.world import World
from system.agents.message import USER
from system.agents.multiplexer import Multiplexer
from system.agents.orchestrator import Orchestrator
from system.agents.turns import Turns
from system.agents.view import AgentView
from system.errors import HasChildren, NameTaken
from system.ports import Host, Json, JsonObject, Tools
from system.providers.agentic import AgenticProvider
from system.recovery.recovery import Recovery
from system.runtime import Options, Resume, Runtime
from system.sessions.session_store import SessionStore

T = TypeVar("T")

SLOTS: Final = 3
PROVIDER: Final = "agentic"

_PLACES: Final = 7


class RecordedTools:
    """Tools whose results are noted."""

    def __init__(self, tools: Tools, results: list[JsonObject]) -> None:
        self._tools = tools
        self._results = results

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Pass the call on."""
        result = self._tools.call(call_id, name, arguments)
        self._results.append(result)
        return result


class LifecycleTarget(SystemTarget):
    """One root, its agents, and the tree that they must be."""

    tag = "lifecycle"
    crash_free = True
    expected_marks = ()
    changed_by_boot = frozenset(("/runtime.lock",))

    def __init__(self) -> None:
        self._shadow = ShadowTree(SLOTS)
        self._reader = SnapshotReader()
        self._agent = ScriptedAgent()
        self._results: list[JsonObject] = []
        self._provider = AgenticProvider(SimulatedAgentService(ProviderLedger(), self._brain))
        self._world: World[Host]
        self._orchestrator: Orchestrator
        self._runtime: Runtime

    def _brain(self, prompt: str, tools: Tools) -> str:
        return self._agent(prompt, RecordedTools(tools, self._results))

    def attach(self, world: World[Host]) -> None:
        """Learn the world."""
        self._world = world

    def before_step(self, choices: Choices) -> None:
        """Choose the schedule of this step."""
        self._world.schedule = schedule(choices)

    def actions(self) -> Sequence[ActionKind]:
        """Return the four things that happen to agents."""
        return (
            ActionKind("create", 4, self._create, self._propose_create),
            ActionKind("spawn", 6, self._spawn, self._propose_spawn, self._has_agents),
            ActionKind("turn", 6, self._turn, self._propose_turn, self._has_agents),
            ActionKind("terminate", 4, self._terminate, self._propose_terminate, self._has_agents),
        )

    def recover(self, host: Host) -> None:
        """Put a runtime together whose parts can be looked into, and recover."""
        options = Options()
        multiplexer = Multiplexer({PROVIDER: self._provider}, SLOTS)
        self._orchestrator = Orchestrator(host, SessionStore(host), multiplexer, options.framing)
        recovery = Recovery(self._orchestrator)
        self._world.loop.run_until_complete(recovery.run())
        turns = Turns(self._orchestrator, options.turn_timeout_ns)
        self._runtime = Runtime(recovery, turns, Resume.ALL)

    def check_recovered(self) -> None:
        """See that the tree has come back; then let the agents run."""
        check_report(self._runtime.report)
        self._check()
        self._call(self._started())

    async def _started(self) -> None:
        self._runtime.start()

    # -- what happens to agents ----------------------------------------------------------

    def _propose_create(self, choices: Choices) -> Arguments:
        return {"name": choices.pick("name", NAMES), "instructions": text(choices)}

    def _create(self, arguments: Arguments) -> str:
        name, instructions = str(arguments["name"]), str(arguments["instructions"])
        try:
            agent_id = self._call(self._runtime.create_agent(name, instructions, PROVIDER))
        except NameTaken as refused:
            self._shadow.refuse_agent(name)
            return self._refused(refused)
        self._shadow.add_agent(agent_id, name, None)
        return self._idle("ack")

    def _propose_spawn(self, choices: Choices) -> Arguments:
        parent = choices.integer("parent", 0, _PLACES)
        return {"parent": parent, **self._propose_create(choices)}

    def _spawn(self, arguments: Arguments) -> str:
        parent = self._chosen(arguments["parent"])
        name = str(arguments["name"])
        asked: dict[str, Json] = {"name": name, "instructions": str(arguments["instructions"])}
        result = self._play(parent, "spawn_agent", asked)
        if "error" in result:
            self._shadow.refuse_agent(name)
            return self._idle(f"refused: {result['error']}")
        child_id = str(result["agent_id"])
        self._shadow.add_agent(child_id, name, parent.agent_id)
        # Its instructions are the first message that it gets.
        self._shadow.add_turn(child_id)
        return self._idle("spawned")

    def _propose_turn(self, choices: Choices) -> Arguments:
        return {
            "agent": choices.integer("agent", 0, _PLACES),
            "together": choices.integer("together", 1, len(NAMES)),
            "payload": text(choices),
        }

    def _turn(self, arguments: Arguments) -> str:
        """Let some agents, one after the other in the view, run side by side."""
        living, together = self._living(), arguments["together"]
        first = living.index(self._chosen(arguments["agent"]))
        assert isinstance(together, int)
        called = (living[first:] + living[:first])[:together]
        for look in called:
            self._call(self._runtime.send(look.agent_id, str(arguments["payload"])))
            self._shadow.add_turn(look.agent_id)
        return self._idle(f"{len(called)} turns")

    def _propose_terminate(self, choices: Choices) -> Arguments:
        return {
            "agent": choices.integer("agent", 0, _PLACES),
            "by": choices.pick("by", ("operator", "itself")),
        }

    def _terminate(self, arguments: Arguments) -> str:
        look = self._chosen(arguments["agent"])
        if arguments["by"] == "itself":
            return self._complete(look)
        try:
            self._call(self._runtime.terminate(look.agent_id))
        except HasChildren as refused:
            self._shadow.refuse_end(look.agent_id)
            return self._refused(refused)
        self._shadow.end_agent(look.agent_id)
        return self._idle("ended")

    def _complete(self, look: AgentView) -> str:
        result = self._play(look, "complete", {"result": "done"})
        if "error" in result:
            self._shadow.refuse_end(look.agent_id)
            return self._idle(f"refused: {result['error']}")
        self._shadow.end_agent(look.agent_id)
        self._shadow.add_response(look.agent_id)
        return self._idle("completed")

    def _play(self, look: AgentView, tool: str, arguments: dict[str, Json]) -> JsonObject:
        """Let an agent call one tool in a turn; return what the tool has answered."""
        self._results.clear()
        self._call(self._runtime.send(look.agent_id, {"do": [[tool, arguments]]}))
        self._world.loop.run_until_idle()
        self._raise_failures()
        if not self._results:
            raise Starved("an agent was given something to do, and has not done it", agent=look)
        self._shadow.add_turn(look.agent_id)
        return self._results[0]

    # -- looking -------------------------------------------------------------------------

    def _idle(self, outcome: str) -> str:
        self._world.loop.run_until_idle()
        self._raise_failures()
        self._check()
        return outcome

    def _refused(self, refused: Exception) -> str:
        return self._idle(f"refused: {type(refused).__name__}")

    def _check(self) -> None:
        files = self._world.disk.files()
        snapshot = self._reader.read({path[1:]: content for path, content in files.items()})
        self._shadow.check(self._runtime.view(), snapshot, self._registries())

    def _registries(self) -> Registries:
        orchestrator = self._orchestrator
        agents = [agent for agent in orchestrator.agents.values() if agent.agent_id != USER]
        at_work = [task.get_name() for task in orchestrator.at_work()]
        at_work += [
            f"a lock of {agent.name()}"
            for agent in orchestrator.agents.values()
            if agent.turn.locked() or agent.lock.locked() or agent.owed or agent.creation
        ]
        return Registries(
            handlers={agent.agent_id: agent.session_id for agent in agents},
            sessions={agent.session_id: agent.agent_id for agent in agents},
            names=dict(orchestrator.tree.names),
            children={node.agent_id: node.children for node in orchestrator.tree},
            taken=[name for name in NAMES if self._runtime.is_taken(name)],
            at_work=at_work,
        )

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        result = self._world.loop.run_until_complete(work)
        self._raise_failures()
        return result

    def _raise_failures(self) -> None:
        """Raise what something raised that nobody awaits."""
        for failure in self._runtime.failures:
            raise failure
        self._world.loop.raise_unhandled()

    def _living(self) -> list[AgentView]:
        return [look for look in self._runtime.view().agents if look.alive]

    def _has_agents(self) -> bool:
        return bool(self._living())

    def _chosen(self, place: object) -> AgentView:
        living = self._living()
        assert isinstance(place, int)
        if not living:
            raise Diverged(0, "an agent", "none lives")
        return living[place % len(living)]


def lifecycle() -> LifecycleTarget:
    """Return a fresh one."""
    return LifecycleTarget()
