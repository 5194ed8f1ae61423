"""The orchestrator: all agents of one root, and their concurrent tasks."""

from __future__ import annotations

from asyncio import Task, get_running_loop
from collections.abc import Callable, Coroutine, Sequence
from typing import Final, TypeAlias

from system.agents.activities import Activities
from system.agents.agent import Agent
from system.agents.durable_work import AgentSessions, DurableWork
from system.agents.history import History
from system.agents.message import USER, USER_SESSION
from system.agents.multiplexer import Multiplexer
from system.agents.tree import Tree
from system.durable.back_off import MOST_ATTEMPTS
from system.durable.ended import ENDED
from system.durable.errors import RowDamaged
from system.durable.state import StateDatabase
from system.ports import Host
from system.recording.wal.recording import WalRecording
from system.sessions.session_store import SessionStore
from system.storage.framing import Framing
from system.storage.line import timestamp

SECOND_NS: Final = 1_000_000_000
LONGEST_PAUSE_NS: Final = 60 * SECOND_NS
USER_LOG: Final = "user/events.jsonl"

TakeTurns: TypeAlias = Callable[[Agent], Coroutine[None, None, None]]


class Orchestrator:
    """All agents of one root by agent id, USER among them, and the tree of the others.

    ``sessions`` has the same agents by session id.

    ``take_turns`` runs an agent as long as it is runnable; it is None until turns may begin.
    ``woken`` are the agents, by id, that were woken before that.
    ``unserved`` are sessions that cannot be read in this lifetime, ``lost`` those that no
    lifetime can read, because too much of them is missing. ``failures`` are unexpected
    exceptions. ``recording`` is None if executions are not recorded; ``epoch`` is that of this
    boot. ``durable`` is the work in ``state.db``, ``activities`` performs irreversible actions.
    ``collected`` are the agents whose files were removed in this lifetime. ``damaged_rows`` are
    sentences about rows of collected agents that recovery has met. ``on_end`` is called when an
    agent has ended, with the agent.
    """

    def __init__(
        self, host: Host, store: SessionStore, multiplexer: Multiplexer, framing: Framing,
        most_attempts: int = MOST_ATTEMPTS,
    ) -> None:  # fmt: skip
        self.host: Final = host
        self.store: Final = store
        self.multiplexer: Final = multiplexer
        self.framing: Final = framing
        self.tree: Final = Tree()
        self.agents: Final[dict[str, Agent]] = {}
        self.sessions: Final[dict[str, Agent]] = {}
        self.unserved: Final[set[str]] = set()
        self.lost: Final[set[str]] = set()
        self.failures: Final[list[BaseException]] = []
        self.recording: WalRecording | None = None
        sessions = AgentSessions(self.sessions, self.unserved, self.lost)
        self.durable: Final = DurableWork(host, sessions, most_attempts)
        self.activities: Final = Activities(host, self.durable)
        self.collected: Final[set[str]] = set()
        self.damaged_rows: Final[set[str]] = set()
        self.on_end: Callable[[Agent], None] | None = None
        self.epoch = 0
        self.take_turns: TakeTurns | None = None
        self.woken: Final[set[str]] = set()
        self.closing = False

    @property
    def provider_names(self) -> Sequence[str]:
        """The providers that a child may use."""
        return sorted(self.multiplexer.pools)

    @property
    def user(self) -> Agent:
        """The agent that represents the operator."""
        return self.agents[USER]

    @property
    def state(self) -> StateDatabase | None:
        """The database of the root; None while it has none."""
        return self.durable.state

    def new_agent(self, agent_id: str, session_id: str, history: History | None = None) -> Agent:
        """Register and return an agent; without a history, none of its lines is durable yet."""
        assert agent_id not in self.agents
        path = self.log_path(session_id)
        store = None if agent_id == USER else self.store
        history = History() if history is None else history
        agent = Agent(self.host, store, agent_id, session_id, path, self.framing, history)
        self.agents[agent_id] = self.sessions[session_id] = agent
        return agent

    def forget(self, agent: Agent) -> None:
        """Remove an agent that is no longer in the tree."""
        del self.agents[agent.agent_id], self.sessions[agent.session_id]

    def is_collected(self, agent_id: str) -> bool:
        """Whether an agent was collected; during a recovery the database decides.

        It was, if its row is damaged: only collected agents have one.
        """
        if agent_id in self.collected or self.state is None or self.take_turns is not None:
            return agent_id in self.collected
        try:
            return self.state.transact(lambda each: ENDED.read(each, agent_id)) is not None
        except RowDamaged as damaged:
            self.damaged_rows.add(str(damaged))
            return True

    def log_path(self, session_id: str) -> str:
        """Return the path of a session's log."""
        if session_id == USER_SESSION:
            return USER_LOG
        return f"{self.store.directory_of(session_id)}/events.jsonl"

    def now(self) -> str:
        """Return the wall-clock time in the form that lines have."""
        return timestamp(self.host.clock.wall_ns())

    # -- work ----------------------------------------------------------------------------

    def has_due_trigger(self, agent: Agent) -> bool:
        """Whether a trigger of an agent is due, and the agent may take a turn."""
        return agent.may_run and self.durable.due_trigger(agent.session_id) is not None

    def wake(self, agent: Agent) -> bool:
        """Start the task that takes the agent's turns, if it has something to do.

        Returns whether that task is under way.
        """
        if self.take_turns is None:
            self.woken.add(agent.agent_id)
            return False
        turns = agent.work.turns
        if turns.task is not None:
            return True
        if self.closing or agent.agent_id == USER:
            return False
        if not (agent.runnable or self.has_due_trigger(agent)):
            return False
        turns.begin(self.task(self.take_turns(agent), f"turns of {agent.agent_id}"))
        return True

    async def wake_or_park(self, agent: Agent) -> None:
        """Wake an agent; if it has nothing to do, close the descriptor of its log."""
        if not self.wake(agent):
            await agent.log.park()

    def task(self, work: Coroutine[None, None, None], name: str) -> Task[None]:
        """Start a task; an exception that it raises is appended to ``failures``."""
        task = get_running_loop().create_task(work, name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failures.append(failure)

    def stop_waiting(self) -> None:
        """Cancel every task that only waits for a time; the others continue."""
        self.activities.stop()
        for agent in self.agents.values():
            agent.work.cancel_pauses()

    def at_work(self) -> list[Task[None]]:
        """Return the tasks that take turns, dispatch or perform activities."""
        tasks = self.activities.tasks()
        for agent in self.agents.values():
            tasks += agent.work.tasks()
        return tasks
