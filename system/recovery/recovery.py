"""Recovery: ten passes from whatever a crash has left to a runtime that can start.

Each pass is idempotent, and may be crashed anywhere: what it wrote is what the next
recovery finds done. No turn runs before the last one is over. A session that cannot be
read is told in the report and left alone; it never stops the others.
"""

from __future__ import annotations

import gc
from asyncio import wait
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from system.agents import event
from system.agents.agent import Agent, Owed
from system.agents.history import History, SessionFacts
from system.agents.log_opener import LogOpener
from system.agents.message import RUNTIME, USER, Message, MessageKind
from system.agents.orchestrator import USER_LOG, USER_SESSION, Orchestrator
from system.agents.provider_state import ProviderState
from system.agents.tree import Node
from system.errors import NewerFormat, RuntimeRefused, StorageError
from system.ports import Json, JsonObject, ProviderError
from system.recovery.orphans import SessionEvidence, SessionIndex, Verdict, is_damaged
from system.recovery.parents_first import parents_first
from system.recovery.recovery_report import RecoveryReport
from system.root import Root, check_served
from system.sessions.session import SessionRecord, SessionState
from system.sessions.store_report import Problem, ReportBuilder, SessionProblem
from system.storage.event_log import EventLog


class Recovery:
    """One recovery of one root. ``orchestrator``, ``root`` and ``report`` are what it gives."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self.orchestrator = orchestrator
        self.host = orchestrator.host
        self.store = orchestrator.store
        self.multiplexer = orchestrator.multiplexer
        self.report = RecoveryReport()
        self.root: Root
        self._sessions: dict[str, list[str]] = {}
        self._logs: dict[str, EventLog] = {}
        self._histories: dict[str, History] = {}
        self._records: dict[str, SessionRecord] = {}
        self._record_problems: dict[str, SessionProblem] = {}

    async def run(self) -> None:
        """Do all passes in their order.

        Raises ``NotARoot``, ``RootInUse``, ``NewerFormat``, ``StorageFull`` or ``OSError``
        when the root as a whole cannot be served; then its lock is free.
        """
        self.lock()
        collecting = gc.isenabled()
        # Everything that recovery makes lives on; looking for garbage in it is a third of the time.
        gc.disable()
        try:
            for recover in PASSES[1:]:
                done = recover(self)
                if done is not None:
                    await done
        except BaseException:
            await self._let_go()
            raise
        finally:
            if collecting:
                gc.enable()

    # 1
    def lock(self) -> None:
        """Lock the root and begin a new boot epoch."""
        self.root = Root.open(self.host.files, self.host.ids)
        self.report.epoch = self.root.epoch
        self.report.swept += self.root.swept

    # 2
    def sweep(self) -> None:
        """Remove temporary files and empty directories of sessions."""
        told = ReportBuilder()
        self._sessions = self.store.tidy(told)
        self.report.swept += told.swept
        self.report.orphans += told.removed
        self.report.problems += told.problems

    # 3
    async def open_logs(self) -> None:
        """Open every log: cut torn ends, put damage aside, and tell it."""
        opener = LogOpener(self.host, self.orchestrator.log_path, self.orchestrator.framing)
        self._logs[USER_SESSION] = opener.open(USER_SESSION)
        self._logs.update(await opener.open_all(self._sessions))
        self.report.problems += opener.problems

    def _tell(self, session_id: str, problem: Problem, detail: str) -> None:
        self.report.problems.append(SessionProblem(session_id, problem, detail))

    # 4
    def fold(self) -> None:
        """Fold every log, and read every record."""
        unread = {told.session_id for told in self.report.problems}
        for session_id in (USER_SESSION, *self._sessions):
            if session_id in unread:
                continue
            log = self._logs.get(session_id)
            try:
                history = self._folded(session_id, log) if log else History()
            except (KeyError, ValueError) as error:
                self._not_ours(session_id, f"a line of its log has data that are not ours: {error}")
                unread.add(session_id)
                continue
            self._histories[session_id] = history
            if session_id != USER_SESSION:
                self._read_record(session_id)
        self.orchestrator.unserved |= unread
        self.report.problems.sort(key=lambda told: told.session_id)

    def _folded(self, session_id: str, log: EventLog) -> History:
        told = log.report
        self.report.lines += told.lines
        self.report.torn_bytes += told.torn_bytes
        self.report.damaged += told.damaged
        self.report.swept += told.swept
        if told.missing:
            self.report.missing[session_id] = told.missing
        history = History.from_lines(log.recovered)
        log.recovered = ()
        self.report.unknown_lines += history.ignored
        return history

    def _not_ours(self, session_id: str, reason: str) -> None:
        if session_id == USER_SESSION:
            raise NewerFormat(USER_LOG, reason)
        self._tell(session_id, Problem.LOG_NEWER, reason)
        self._logs.pop(session_id).close()

    def _read_record(self, session_id: str) -> None:
        found = self.store.examine(session_id)
        if isinstance(found, SessionRecord):
            self._records[session_id] = found
        else:
            self._record_problems[session_id] = found

    # 5
    def place(self) -> None:
        """Place the agents, roots first; remove what never became one; repair records."""
        history = self._histories.pop(USER_SESSION)
        user = self.orchestrator.new_agent(USER, USER_SESSION, history)
        user.log = self._logs[USER_SESSION]
        witnesses = SessionIndex({USER_SESSION: user.history, **self._histories})
        for session_id in witnesses.promised:
            if session_id not in self._histories and session_id not in self.orchestrator.unserved:
                self._without_directory(session_id, witnesses)
        for session_id, history in list(self._histories.items()):
            if history.agent is None:
                self._without_agent(session_id, history, witnesses)
        for session_id, parent_id, detached in parents_first(self._histories):
            if detached:
                self.report.detached.append(session_id)
            self._placed(session_id, parent_id)
        if not (self.orchestrator.unserved or self.orchestrator.lost):
            known = {USER, RUNTIME, *self.orchestrator.agents}
            self.report.vanished = sorted(witnesses.senders - known)

    def _without_agent(self, session_id: str, history: History, witnesses: SessionIndex) -> None:
        """Deal with a session that has no ``agent.created``."""
        log, problem = self._logs.get(session_id), self._record_problems.get(session_id)
        fate = witnesses.verdict_on(
            session_id,
            SessionEvidence(
                history,
                log is not None and is_damaged(log.report),
                self._records.get(session_id),
                problem is not None and problem.problem is not Problem.NO_RECORD,
            ),
        )
        if fate is Verdict.NAMED:
            history.agent = witnesses.promised[session_id]
            return
        del self._histories[session_id]
        self._records.pop(session_id, None)
        if log is not None:
            self._logs.pop(session_id).close()
        if fate is Verdict.LOST:
            self.orchestrator.lost.add(session_id)
            self._tell(session_id, Problem.LOG_DAMAGED, "it does not say which agent it is")
        elif fate is Verdict.ORPHAN:
            self._remove(session_id)

    def _without_directory(self, session_id: str, witnesses: SessionIndex) -> None:
        """Deal with a promised session without a directory: it is to be created, or lost."""
        nothing = SessionEvidence(
            History(), log_is_damaged=False, record=None, record_is_damaged=False
        )
        if witnesses.verdict_on(session_id, nothing) is Verdict.LOST:
            self.orchestrator.lost.add(session_id)
            self._tell(session_id, Problem.LOG_DAMAGED, "nothing of it is left")

    def _remove(self, session_id: str) -> None:
        try:
            self.store.remove(session_id)
        except OSError as error:
            self._tell(session_id, Problem.FAILED, f"an orphan could not be removed ({error})")
        else:
            self.report.orphans.append(session_id)

    def _placed(self, session_id: str, parent_id: str | None) -> None:
        history = self._histories[session_id]
        facts = history.agent
        assert facts is not None
        if (duplicate := self.orchestrator.agents.get(facts.agent_id)) is not None:
            owner = duplicate.session_id
            detail = f"it says that it is agent {facts.agent_id}, which is session {owner}"
            self._tell(session_id, Problem.LOG_DAMAGED, detail)
            self._logs.pop(session_id).close()
            self.orchestrator.unserved.add(session_id)
            return
        agent = self.orchestrator.new_agent(facts.agent_id, session_id, history)
        agent.log = self._logs[session_id]
        agent.record = record = self._records.get(session_id)
        if history.session is None:
            if record is not None:
                history.session = SessionFacts(
                    record.provider_name, record.model, facts.instructions
                )
            else:
                agent.stopped = "neither its log nor its record says which provider it has"
        if agent.alive and record is not None and record.state is SessionState.TERMINATED:
            # Only damage makes this; an agent that has ended is not run again (S-28).
            agent.stopped = "its record says that it has ended, its log does not"
        node = Node(facts.agent_id, session_id, facts.name, parent_id, alive=agent.alive)
        self.orchestrator.tree.add(node)

    # 6
    async def redo(self) -> None:
        """Keep every promise that the logs hold, and finish the ends that were begun."""
        orchestrator = self.orchestrator
        agents = [orchestrator.agents[node.agent_id] for node in orchestrator.tree]
        touched: dict[str, Agent] = {}
        for agent in agents:
            try:
                for turn in agent.history.completed:
                    orchestrator.promise(agent, turn, touched)
            except (KeyError, TypeError, ValueError) as error:
                agent.stopped = f"a turn promises what this version does not know: {error!r}"
                self._tell(agent.session_id, Problem.LOG_NEWER, agent.stopped)
            agent.history.completed.clear()
            orchestrator.owe_errors(agent, touched)
            orchestrator.owe_notices(agent, touched)
        self.report.redone = sum(
            len(agent.owed) + (agent.creation is not None) for agent in touched.values()
        )
        await orchestrator.tell(touched.values())
        for agent in agents:
            await self._repair(agent)

    async def _repair(self, agent: Agent) -> None:
        """Let log and record say the same; what the disk refuses is left to the next boot."""
        history = agent.history
        try:
            if agent.record is None:
                await self._write_record(agent)
            if history.ended and not history.termination_logged:
                ended: JsonObject = {
                    "agent_id": agent.agent_id, "reason": history.ended, "returned": list[Json](),
                }  # fmt: skip
                await agent.commit(lambda: [(event.AGENT_TERMINATED, ended)])
                self.report.ended.append(agent.agent_id)
            if history.ended:
                await self.orchestrator.retire(agent)
        except (OSError, StorageError) as error:
            self._tell(agent.session_id, Problem.FAILED, f"it could not be repaired ({error})")
        except RuntimeRefused as refused:
            self._tell(agent.session_id, Problem.LOG_DAMAGED, str(refused))

    async def _write_record(self, agent: Agent) -> None:
        problem = self._record_problems.get(agent.session_id)
        facts = agent.history.session
        if problem is not None and problem.problem is Problem.NEWER:
            agent.foreign_record = True
            self.report.problems.append(problem)
        if facts is None or agent.foreign_record:
            return
        state = SessionState.TERMINATED if agent.history.ended else SessionState.SUSPENDED
        blob = ProviderState(agent.history.identity).encoded()
        record = SessionRecord(agent.session_id, facts.provider, facts.model, state, blob)
        await self.host.workers.run(lambda: self.store.replace(record))
        agent.record = record
        if problem is not None:
            self.report.problems.append(problem)

    # 7
    def reclaim(self) -> None:
        """Refuse a root whose ``state.db`` schedules work: this version runs no such work."""
        check_served(self.root.names)

    # 8
    async def suspend(self) -> None:
        """Let every record that says ACTIVE say SUSPENDED: no conversation is open."""
        for agent in self.orchestrator.agents.values():
            record = agent.record
            if record is not None and record.state is SessionState.ACTIVE:
                try:
                    await agent.save(SessionState.SUSPENDED, record.provider_state_blob)
                except (OSError, StorageError) as error:
                    detail = f"its record still says ACTIVE ({error})"
                    self._tell(agent.session_id, Problem.FAILED, detail)
                else:
                    self.report.suspended.append(agent.session_id)

    # 9
    async def notify(self) -> None:
        """Tell the agents whose turns were lost."""
        touched = []
        for agent in self.orchestrator.agents.values():
            if agent.history.open_turns and agent.alive:
                self.report.lost_turns[agent.agent_id] = tuple(agent.history.open_turns)
                if self.orchestrator.owe(agent, [self._notice(agent)]):
                    touched.append(agent)
        await self.orchestrator.tell(touched)

    def _notice(self, agent: Agent) -> Owed:
        lost = list(agent.history.open_turns)
        payload: Json = {
            "notice": "recovery",
            "v": 1,
            "downtime_ns": self._since(agent.history.last_ts),
            "lost_turns": list[Json](lost),
            "pending": len(agent.history.pending),
        }
        message = Message(
            f"{lost[-1]}.lost", RUNTIME, agent.agent_id, MessageKind.SYSTEM, payload,
            self.orchestrator.now(),
        )  # fmt: skip
        return Owed(message.message_id, event.MESSAGE_ENQUEUED, message.data())

    def _since(self, ts: str) -> int:
        """Return how long ago it was that the log had its last line, in nanoseconds."""
        passed = datetime.fromisoformat(self.orchestrator.now()) - datetime.fromisoformat(ts)
        return max(0, passed // timedelta(microseconds=1)) * 1000

    # 10
    async def publish(self) -> None:
        """Count what there is, and ask the providers which conversations nobody knows."""
        report, agents = self.report, self.orchestrator.agents.values()
        report.sessions = len(self.orchestrator.agents) - 1
        report.living = sum(agent.alive for agent in agents) - 1
        report.unkept = sum(len(agent.owed) + (agent.creation is not None) for agent in agents)
        if self.orchestrator.unserved:
            # What cannot be read may well be theirs.
            return
        known = {agent.history.identity for agent in agents}
        strange: list[tuple[str, str]] = []
        for name, pool in sorted(self.multiplexer.pools.items()):
            with suppress(ProviderError):
                kept = await pool.identities()
                strange += [(name, identity) for identity in kept if identity not in known]
        if strange:
            # Few boots have to read this of every record.
            records = [agent.record for agent in agents if agent.record is not None]
            known = {ProviderState.of_encoded(r.provider_state_blob).identity for r in records}
        report.leaks += [
            f"{name}: {identity}" for name, identity in strange if identity not in known
        ]

    async def _let_go(self) -> None:
        orchestrator = self.orchestrator
        orchestrator.closing = True
        orchestrator.stop_waiting()
        while tasks := orchestrator.at_work():
            await wait(tasks)
        # Some agents were only just born; their logs are not among those that were found.
        born = [agent.log for agent in orchestrator.agents.values() if agent.log is not None]
        for log in {log.path: log for log in (*self._logs.values(), *born)}.values():
            with suppress(OSError):
                log.close()
        with suppress(OSError):
            self.root.close()


PASSES: Final[tuple[Callable[[Recovery], Awaitable[None] | None], ...]] = (
    Recovery.lock,
    Recovery.sweep,
    Recovery.open_logs,
    Recovery.fold,
    Recovery.place,
    Recovery.redo,
    Recovery.reclaim,
    Recovery.suspend,
    Recovery.notify,
    Recovery.publish,
)
"""In their order; the numbers are those of the specification."""
