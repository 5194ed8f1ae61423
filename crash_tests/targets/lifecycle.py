"""Agents that are created, work and end while nothing crashes.

The target compares all registries of the orchestrator with each other and with the disk. There
are only five names, so that agents often ask for a name that is taken, and three slots, so that
conversations are suspended and resumed. After every step the runtime is idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.rig.provider_ledger import ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedAgentService
from crash_tests.targets.agents_target import AgentsTarget
from crash_tests.targets.false_alarms import check_report
from crash_tests.targets.script import NAMES, ScriptedAgent
from oracles.runtime.root_snapshot import SnapshotReader
from oracles.runtime.shadow_tree import Registries, ShadowTree
from oracles.violation import Starved
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from system.agents.dispatcher import Dispatcher
from system.agents.message import USER
from system.agents.multiplexer import Multiplexer
from system.agents.orchestrator import Orchestrator
from system.agents.turn_recorder import RecordingOptions
from system.agents.turns import Turns
from system.agents.view import AgentView
from system.errors import HasChildren, NameTaken
from system.ports import Host, Json, JsonObject, Tools
from system.providers.agentic import AgenticProvider
from system.recovery.recovery import recover
from system.runtime import Options, Runtime
from system.sessions.session_store import SessionStore

SLOTS: Final = 3
PROVIDER: Final = "agentic"

_PLACES: Final = 7


class RecordedTools:
    """Tools whose results are appended to ``results``."""

    def __init__(self, tools: Tools, results: list[JsonObject]) -> None:
        self._tools = tools
        self._results = results

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Make the call and record its result."""
        result = self._tools.call(call_id, name, arguments)
        self._results.append(result)
        return result

    async def perform(self, call_id: str, arguments: JsonObject) -> JsonObject:
        """Pass the call on."""
        return await self._tools.perform(call_id, arguments)


class LifecycleTarget(AgentsTarget):
    """One root, its agents, and the shadow of their tree."""

    tag = "lifecycle"
    crash_free = True
    expected_marks = ()

    def __init__(self) -> None:
        super().__init__()
        self._shadow = ShadowTree(SLOTS)
        self._reader = SnapshotReader()
        self._agent = ScriptedAgent()
        self._results: list[JsonObject] = []
        self._provider = AgenticProvider(SimulatedAgentService(ProviderLedger(), self._brain))
        self._orchestrator: Orchestrator

    def _brain(self, prompt: str, tools: Tools) -> str:
        return self._agent(prompt, RecordedTools(tools, self._results))

    def actions(self) -> Sequence[ActionKind]:
        """Return create, spawn, turn and terminate."""
        return (
            ActionKind("create", 4, self._create, self._propose_create),
            ActionKind("spawn", 6, self._spawn, self._propose_spawn, self._has_agents),
            ActionKind("turn", 6, self._turn, self._propose_turn, self._has_agents),
            ActionKind("terminate", 4, self._terminate, self._propose_terminate, self._has_agents),
        )

    def recover(self, host: Host) -> None:
        """Recover a runtime whose orchestrator can be inspected."""
        options = Options()
        multiplexer = Multiplexer({PROVIDER: self._provider}, SLOTS)
        self._orchestrator = Orchestrator(host, SessionStore(host), multiplexer, options.framing)
        dispatcher = Dispatcher(self._orchestrator)
        recovery = self._world.loop.run_until_complete(recover(dispatcher, is_recording=False))
        turns = Turns(dispatcher, options.turn_timeout_ns, RecordingOptions())
        self._runtime = Runtime(recovery, turns)

    def check_recovered(self) -> None:
        """Check that the tree was recovered; then start the turns."""
        check_report(self._runtime.report)
        self._check()
        self._call(self._start())

    # -- actions -------------------------------------------------------------------------

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
        child: dict[str, Json] = {"name": name, "instructions": str(arguments["instructions"])}
        result = self._run_tool(parent, "spawn_agent", child)
        if "error" in result:
            self._shadow.refuse_agent(name)
            return self._idle(f"refused: {result['error']}")
        child_id = str(result["agent_id"])
        self._shadow.add_agent(child_id, name, parent.agent_id)
        # Its instructions are the message of its first turn.
        self._shadow.add_turn(child_id)
        return self._idle("spawned")

    def _propose_turn(self, choices: Choices) -> Arguments:
        return {
            "agent": choices.integer("agent", 0, _PLACES),
            "together": choices.integer("together", 1, len(NAMES)),
            "payload": text(choices),
        }

    def _turn(self, arguments: Arguments) -> str:
        """Run a turn of several agents at once, which follow each other in the view."""
        living, together = self._living(), arguments["together"]
        first = living.index(self._chosen(arguments["agent"]))
        assert isinstance(together, int)
        recipients = (living[first:] + living[:first])[:together]
        for agent in recipients:
            self._call(self._runtime.send(agent.agent_id, str(arguments["payload"])))
            self._shadow.add_turn(agent.agent_id)
        return self._idle(f"{len(recipients)} turns")

    def _propose_terminate(self, choices: Choices) -> Arguments:
        return {
            "agent": choices.integer("agent", 0, _PLACES),
            "by": choices.pick("by", ("operator", "itself")),
        }

    def _terminate(self, arguments: Arguments) -> str:
        agent = self._chosen(arguments["agent"])
        if arguments["by"] == "itself":
            return self._complete(agent)
        try:
            self._call(self._runtime.terminate(agent.agent_id))
        except HasChildren as refused:
            self._shadow.refuse_end(agent.agent_id)
            return self._refused(refused)
        self._shadow.end_agent(agent.agent_id)
        return self._idle("ended")

    def _complete(self, agent: AgentView) -> str:
        result = self._run_tool(agent, "complete", {"result": "done"})
        if "error" in result:
            self._shadow.refuse_end(agent.agent_id)
            return self._idle(f"refused: {result['error']}")
        self._shadow.end_agent(agent.agent_id)
        self._shadow.add_response(agent.agent_id)
        return self._idle("completed")

    def _run_tool(self, agent: AgentView, tool: str, arguments: dict[str, Json]) -> JsonObject:
        """Run a turn in which ``agent`` calls one tool; return the result of the call."""
        self._results.clear()
        self._call(self._runtime.send(agent.agent_id, {"do": [[tool, arguments]]}))
        self._world.loop.run_until_idle()
        self._raise_failures()
        if not self._results:
            raise Starved("an agent has not executed its script", agent=agent)
        self._shadow.add_turn(agent.agent_id)
        return self._results[0]

    # -- checks --------------------------------------------------------------------------

    def _idle(self, outcome: str) -> str:
        """Run the loop until it is idle, and check everything."""
        self._world.loop.run_until_idle()
        self._raise_failures()
        self._check()
        return outcome

    def _refused(self, refused: Exception) -> str:
        return self._idle(f"refused: {type(refused).__name__}")

    def _check(self) -> None:
        snapshot = self._reader.read(self._files())
        self._shadow.check(self._runtime.view(), snapshot, self._registries())

    def _registries(self) -> Registries:
        orchestrator = self._orchestrator
        agents = [agent for agent in orchestrator.agents.values() if agent.agent_id != USER]
        at_work = [task.get_name() for task in orchestrator.at_work()]
        at_work += [
            f"a lock of {agent.name()}"
            for agent in orchestrator.agents.values()
            if agent.work.turn.locked() or agent.log.lock.locked() or agent.log.is_behind
        ]
        return Registries(
            handlers={agent.agent_id: agent.session_id for agent in agents},
            sessions={agent.session_id: agent.agent_id for agent in agents},
            names=dict(orchestrator.tree.names),
            children={node.agent_id: node.children for node in orchestrator.tree},
            taken=[name for name in NAMES if self._runtime.is_taken(name)],
            at_work=at_work,
        )


def lifecycle() -> LifecycleTarget:
    """Return a new target."""
    return LifecycleTarget()
