"""The state that the passes of one recovery share."""

from __future__ import annotations

from system.agents.agent import Agent
from system.agents.dispatcher import Dispatcher
from system.agents.history import History
from system.recording.records.record import ExecutionRecord
from system.recording.wal.recovery import ReadLog
from system.recovery.recovery_report import RecoveryReport
from system.recovery.resume import Resume
from system.root import Root
from system.sessions.session import SessionRecord
from system.sessions.session_problem import Problem, SessionProblem
from system.storage.event_log import EventLog


class RootRecovery:
    """One recovery of one root; the passes fill it in from top to bottom.

    ``sessions`` has the file names of each session by id; ``collected`` are those whose directory
    was garbage. ``logs``, ``histories`` and ``records`` are those that could be read;
    ``record_problems`` has the reason for each record that could not. ``last_ts`` is the time of
    the last line of each log before this recovery. ``recording_log`` is the log of the recording,
    None if executions are not recorded; ``interrupted`` are the records of executions that have
    not ended. ``resume`` chooses the agents whose tasks are resumed.
    """

    def __init__(self, dispatcher: Dispatcher, *, is_recording: bool, resume: Resume) -> None:
        self.is_recording = is_recording
        self.resume = resume
        self.dispatcher = dispatcher
        self.orchestrator = dispatcher.orchestrator
        self.host = self.orchestrator.host
        self.store = self.orchestrator.store
        self.report = RecoveryReport()
        self.root: Root
        self.sessions: dict[str, list[str]] = {}
        self.collected: set[str] = set()
        self.logs: dict[str, EventLog] = {}
        self.histories: dict[str, History] = {}
        self.last_ts: dict[str, str] = {}
        self.records: dict[str, SessionRecord] = {}
        self.record_problems: dict[str, SessionProblem] = {}
        self.recording_log: ReadLog | None = None
        self.interrupted: list[ExecutionRecord] = []

    def report_problem(self, session_id: str, problem: Problem, detail: str) -> None:
        """Add a problem of a session to the report."""
        self.report.problems.append(SessionProblem(session_id, problem, detail))

    def skip_lost(self, agent: Agent, seq: int) -> None:
        """Give the next line of an agent a number above ``seq``, which another log or a row names.

        Lines up to ``seq`` that the agent's own log lacks are reported as missing: they were
        durable.
        """
        log, missing = agent.log.log, self.report.missing
        if log is None or seq <= log.last_seq:
            return
        gaps = missing.get(agent.session_id, ())
        first = max(log.last_seq, *(last for _, last in gaps), 0) + 1
        if first <= seq:
            missing[agent.session_id] = (*gaps, (first, seq))
        log.skip_to(seq)

    def close_log(self, session_id: str) -> None:
        """Close the log of a session that is not available."""
        self.logs.pop(session_id).close()

    def agents(self) -> list[Agent]:
        """Return the agents in the tree, parents before children; USER is not among them."""
        return [self.orchestrator.agents[node.agent_id] for node in self.orchestrator.tree]
