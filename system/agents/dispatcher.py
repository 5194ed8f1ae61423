"""Dispatch: writing the outbox entries of committed turns to other logs.

An entry becomes a line in the recipient's log, with an id that occurs once in that log. So
dispatching it again, after a crash, changes nothing. A running system and recovery execute the
same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from system.agents import event
from system.agents.agent import Agent
from system.agents.apply_outbox import apply_outbox, end_durable_work
from system.agents.creation import new_creation
from system.agents.message import (
    ANSWERED_IF_DEAD,
    UNANSWERED,
    USER,
    Message,
    MessageKind,
    error_about,
)
from system.agents.orchestrator import LONGEST_PAUSE_NS, SECOND_NS, Orchestrator
from system.agents.outbox import Control, Outbox, Spawn
from system.agents.queued_line import QueuedLine
from system.agents.snapshots import Snapshots
from system.agents.tree import Node
from system.agents.turn_complete import TurnComplete
from system.errors import RuntimeRefused, StorageError, UnknownAgent
from system.ports import Json, JsonObject
from system.sessions.session import SessionState
from system.together import together

SNAPSHOT_LINES: Final = 512


class Dispatcher:
    """Queues the entries of outboxes as lines, then writes them: ``enqueue_…``, ``dispatch``."""

    def __init__(self, orchestrator: Orchestrator, snapshot_lines: int = SNAPSHOT_LINES) -> None:
        self.orchestrator = orchestrator
        self.snapshots = Snapshots(orchestrator, snapshot_lines)
        self.agents = orchestrator.agents
        # Agents whose queues got lines since the last dispatch.
        self._due: dict[str, Agent] = {}

    async def dispatch_turn(self, agent: Agent, turn: TurnComplete) -> None:
        """Dispatch the outbox of a turn of ``agent``."""
        if turn.has_state_entries:
            # Turns of one agent follow one another, so this is its last one.
            seq = max(agent.history.outbox)
            await apply_outbox(self.orchestrator, agent, turn, seq)
        self.enqueue_outbox(agent, turn.outbox)
        self.enqueue_notices(agent, [added.subscription_id for added in turn.subscribed])
        await self.dispatch()
        self.pass_dispatched(agent)

    async def finish(self, agent: Agent) -> None:
        """Dispatch the consequences of an agent's end, which is in its log."""
        assert agent.history.ended
        self.enqueue_errors(agent)
        await end_durable_work(self.orchestrator, agent)
        for other in self.agents.values():
            subscriptions = other.history.subscriptions
            self.enqueue_notices(
                other, [key for key, target in subscriptions.items() if target == agent.agent_id]
            )
        await self.dispatch()
        with suppress(OSError, StorageError):
            # If the disk refuses, the next boot does it.
            await self.retire(agent)
        if self.orchestrator.on_end is not None:
            self.orchestrator.on_end(agent)

    async def retire(self, agent: Agent) -> None:
        """Close the conversation and the log of an ended agent; make its record TERMINATED.

        Raises ``StorageError`` or ``OSError``; the next boot then does it.
        """
        await agent.log.park()
        agent.history.exchanges.clear()
        record = agent.log.record
        if record is None or record.state is SessionState.TERMINATED:
            return
        pool = self.orchestrator.multiplexer.pools.get(record.provider_name)
        if pool is not None:
            await pool.close(agent)
        await agent.log.save(SessionState.TERMINATED, record.provider_state_blob)

    # -- the watermark -------------------------------------------------------------------

    def pass_dispatched(self, agent: Agent) -> None:
        """Move the agent's watermark to just before the first line that is not dispatched."""
        history = agent.history
        history.drop_dispatched()
        undispatched = [
            seq
            for seq, turn in history.outbox.items()
            if not self._is_dispatched(turn.outbox)
            or (turn.has_state_entries and seq > agent.applied)
        ]
        undispatched += [
            lost.seq for lost in history.unreachable.values() if not self._is_answered(lost.message)
        ]
        agent.log.dispatched = min(undispatched) - 1 if undispatched else history.seq

    def _is_dispatched(self, outbox: Outbox) -> bool:
        """Whether the logs of other agents have all entries of an outbox."""
        return (
            not outbox.foreign
            and all(self._has_arrived(message) for message in outbox.messages)
            and all(self._is_created(spawn) for spawn in outbox.spawned)
            and all(self._is_applied(control) for control in outbox.controls)
        )

    def _has_arrived(self, message: Message) -> bool:
        target = self.agents.get(message.recipient)
        if target is None:
            return self.orchestrator.is_collected(message.recipient) and self._is_answered(message)
        if message.message_id in target.history.enqueued:
            return True
        return bool(target.history.ended) and self._is_answered(message)

    def _is_answered(self, message: Message) -> bool:
        """Whether the error about a message has arrived, or none is sent."""
        if message.kind in UNANSWERED:
            return True
        target = self.agents.get(message.error_recipient)
        if target is None:
            return False
        return (
            bool(target.history.ended) or f"{message.message_id}.error" in target.history.enqueued
        )

    def _is_created(self, spawn: Spawn) -> bool:
        child = self.agents.get(spawn.agent_id)
        if child is None:
            return self.orchestrator.is_collected(spawn.agent_id)
        return bool(child.history.ended) or spawn.bootstrap_id in child.history.enqueued

    def _is_applied(self, control: Control) -> bool:
        target = self.agents.get(control.target)
        if target is None:
            return self.orchestrator.is_collected(control.target)
        return bool(target.history.ended) or control.control_id in target.history.controls

    # -- queueing ------------------------------------------------------------------------

    def enqueue(self, agent: Agent, line: QueuedLine | Message) -> None:
        """Queue a line, or that of a message, for the log of ``agent``, unless the log has it."""
        if agent.log.enqueue(line):
            self._due[agent.agent_id] = agent

    def enqueue_outbox(self, agent: Agent, outbox: Outbox) -> None:
        """Queue the entries that a turn of ``agent`` has for other logs."""
        assert not outbox.foreign
        for spawn in outbox.spawned:
            self._enqueue_child(agent, spawn)
        for control in outbox.controls:
            self._enqueue_control(agent, control)
        for message in outbox.messages:
            self._enqueue_message(message)

    def redo_outbox(self, agent: Agent, outbox: Outbox, seq: int) -> None:
        """Queue those entries of the outbox of line ``seq`` that are missing in other logs.

        All entries up to line ``dispatched`` were written once. So of these no agent is created
        again, and a line is queued only if damage to an existing log may have removed it.
        """
        was_dispatched = seq <= agent.history.dispatched
        self.enqueue_outbox(
            agent, self._lost(outbox, agent.session_id, seq) if was_dispatched else outbox
        )

    def _lost(self, outbox: Outbox, session_id: str, seq: int) -> Outbox:
        """Return the entries of line ``seq`` of a session that the other logs may have lost."""
        return Outbox(
            tuple(
                [each for each in outbox.messages if self._misses(each.recipient, session_id, seq)]
            ),
            tuple(
                [each for each in outbox.spawned if self._misses(each.agent_id, session_id, seq)]
            ),
            tuple([each for each in outbox.controls if self._misses(each.target, session_id, seq)]),
        )

    def _misses(self, agent_id: str, session_id: str, seq: int) -> bool:
        """Whether the log of a living agent may lack an entry of line ``seq`` of a session."""
        agent = self.agents.get(agent_id)
        return (
            agent is not None
            and agent.alive
            and agent.history.dispatched_of.get(session_id, 0) < seq
        )

    def enqueue_errors(self, agent: Agent) -> None:
        """Queue an error about each message that ``agent`` will never read."""
        for message, reason, seq in agent.history.unreachable.values():
            if self._misses(message.error_recipient, agent.session_id, seq):
                self._enqueue_error(message, reason)

    def enqueue_notices(self, subscriber: Agent, subscription_ids: Sequence[str]) -> None:
        """Queue the notices of those subscriptions whose target has ended."""
        history = subscriber.history
        if history.ended:
            return
        for subscription_id in subscription_ids:
            target = self.agents.get(history.subscriptions.get(subscription_id, ""))
            if target is None or not target.history.ended:
                continue
            payload: Json = {
                "event": "terminated", "agent_id": target.agent_id, "name": target.name(),
            }  # fmt: skip
            notice = Message(
                f"{subscription_id}.notice", target.agent_id, subscriber.agent_id,
                MessageKind.NOTICE, payload, self.orchestrator.now(),
            )  # fmt: skip
            self.enqueue(subscriber, notice)

    def _enqueue_message(self, message: Message) -> None:
        recipient = self.agents.get(message.recipient)
        if recipient is None:
            # If it cannot be read in this lifetime, a later lifetime dispatches this.
            if self.orchestrator.is_collected(message.recipient):
                self._enqueue_error(message, "the recipient has ended")
            return
        if message.message_id in recipient.history.enqueued:
            return
        if recipient.history.ended:
            self._enqueue_error(message, "the recipient has ended")
        else:
            self.enqueue(recipient, message)

    def _enqueue_error(self, message: Message, reason: str) -> None:
        target = self.agents.get(message.error_recipient)
        if target is None or target.history.ended or message.kind in UNANSWERED:
            return
        error = error_about(message, reason, self.orchestrator.now())
        self.enqueue(target, error)

    def _enqueue_control(self, agent: Agent, control: Control) -> None:
        target = self.agents.get(control.target)
        if target is not None and not target.history.ended:
            data: JsonObject = {"control_id": control.control_id, "by": agent.agent_id}
            self.enqueue(target, QueuedLine(control.control_id, control.event, data))

    def _enqueue_child(self, parent: Agent, spawn: Spawn) -> None:
        orchestrator = self.orchestrator
        child = self.agents.get(spawn.agent_id)
        if child is None:
            if (
                orchestrator.is_collected(spawn.agent_id)
                or spawn.session_id in orchestrator.lost
                or spawn.session_id in orchestrator.unserved
            ):
                return
            child = self._new_child(parent, spawn)
        if child.history.ended:
            return
        bootstrap = Message(
            spawn.bootstrap_id, parent.agent_id, spawn.agent_id, MessageKind.BOOTSTRAP,
            spawn.instructions, orchestrator.now(),
        )  # fmt: skip
        self.enqueue(child, bootstrap)

    def _new_child(self, parent: Agent, spawn: Spawn) -> Agent:
        child = self.orchestrator.new_agent(spawn.agent_id, spawn.session_id)
        data: JsonObject = {
            "agent_id": spawn.agent_id,
            "name": spawn.name,
            "parent_session_id": parent.session_id,
            "instructions": spawn.instructions,
            "request_id": None,
        }
        child.log.creation = new_creation(
            spawn.session_id, spawn.provider, spawn.model, "", SessionState.SUSPENDED, data
        )
        node = Node(spawn.agent_id, spawn.session_id, spawn.name, parent.agent_id)
        self.orchestrator.tree.add(node)
        return child

    # -- writing -------------------------------------------------------------------------

    async def dispatch(self) -> None:
        """Write all queued lines, with one barrier for each log, all logs at the same time."""
        due, self._due = list(self._due.values()), {}
        if len(due) == 1:
            await self._write(due[0])
        elif due:
            await together(self._write(agent) for agent in due)

    async def _write(self, agent: Agent) -> None:
        try:
            await agent.log.write_queue()
        except (OSError, StorageError) as refused:
            agent.work.trouble = str(refused)
            self._retry_later(agent)
        except UnknownAgent:
            await self._bounce(agent)
        except RuntimeRefused:
            # It is stopped: the next boot dispatches the outbox.
            return
        else:
            if agent.agent_id == USER:
                # It takes no turns; the other agents do this between two turns.
                await self.snapshots.take_if_due(agent)
            await self.orchestrator.wake_or_park(agent)

    async def _bounce(self, agent: Agent) -> None:
        """Answer the messages in the queue of an agent that has ended with errors."""
        assert agent.agent_id != USER
        queue, agent.log.queue = agent.log.queue, {}
        for line in queue.values():
            if line.event == event.MESSAGE_ENQUEUED:
                message = Message.from_data(line.data)
                if message.kind not in ANSWERED_IF_DEAD:
                    self._enqueue_error(message, "the recipient has ended")
        await self.dispatch()

    def _retry_later(self, agent: Agent) -> None:
        retry = agent.work.retry
        if retry.task is None and not agent.log.stopped and not self.orchestrator.closing:
            retry.begin(self.orchestrator.task(self._retry(agent), f"dispatch {agent.name()}"))

    async def _retry(self, agent: Agent) -> None:
        log, work = agent.log, agent.work
        pause_ns = SECOND_NS
        try:
            while log.is_behind and not log.stopped and agent.alive:
                await work.retry.pause(self.orchestrator.host.clock, pause_ns)
                pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)
                try:
                    await log.write_queue()
                except (OSError, StorageError, RuntimeRefused) as refused:
                    work.trouble = str(refused)
                else:
                    work.trouble = ""
                if self.orchestrator.closing:
                    return
        finally:
            work.retry.end()
        if not agent.alive:
            await self._bounce(agent)
        await self.orchestrator.wake_or_park(agent)
