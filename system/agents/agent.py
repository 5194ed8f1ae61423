"""One agent: its identity, the state of its session, its log and its work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from system.agents.agent_log import AgentLog
from system.agents.agent_work import AgentWork
from system.agents.history import History
from system.agents.turn_work import TaskProgress
from system.durable.task import FINAL, TaskStatus
from system.ports import Host, Json
from system.sessions.session_store import SessionStore
from system.storage.framing import Framing


class KnownTask(NamedTuple):
    """A task of an agent, as its last checkpoint has left it."""

    status: TaskStatus
    todos: Json
    last_seq: int

    @classmethod
    def behind(cls, progress: TaskProgress) -> KnownTask:
        """Return the task after a checkpoint."""
        return cls(progress.status, progress.todos, progress.next_seq)


class Agent:
    """One agent; ``history`` is the state computed from its log. USER has no session ``store``.

    ``applied`` is the number of the last line whose outbox was applied. ``tasks`` are those that
    have not ended, by id: from the rows at the boot, and from later lines.
    """

    def __init__(
        self,
        host: Host,
        store: SessionStore | None,
        agent_id: str,
        session_id: str,
        path: str,
        framing: Framing,
        history: History,
    ) -> None:
        self.agent_id: Final = agent_id
        self.session_id: Final = session_id
        self.history: Final = history
        self.log: Final = AgentLog(host, store, agent_id, session_id, path, framing, history)
        self.work: Final = AgentWork()
        self.applied = 0
        self.tasks: Final[dict[str, KnownTask]] = {}

    @property
    def alive(self) -> bool:
        """Whether the agent has not ended."""
        return not self.history.ended

    @property
    def may_run(self) -> bool:
        """Whether it may take a turn if it has a message or a trigger."""
        history = self.history
        return bool(
            not history.ended and not self.log.stopped and (not history.gated or history.permits)
        )

    @property
    def runnable(self) -> bool:
        """Whether it has pending messages, and may take a turn."""
        return bool(self.history.pending) and self.may_run

    def pass_applied(self, seq: int) -> None:
        """Record that the outboxes of all lines up to ``seq`` are applied to ``state.db``."""
        self.applied = max(self.applied, seq)

    def pass_tasks(self, checkpoints: Sequence[TaskProgress]) -> None:
        """Apply the checkpoints of a durable line."""
        for progress in checkpoints:
            if progress.status in FINAL:
                self.tasks.pop(progress.task_id, None)
            else:
                self.tasks[progress.task_id] = KnownTask.behind(progress)

    def name(self) -> str:
        """Return the agent's name, or its id before it is created."""
        data = self.history.agent
        return data.name if data is not None else self.agent_id
