"""The orchestrator: brings what one log promises into the other logs, and wakes who has work.

A promise is kept by writing lines into the logs that it concerns, each under an id that is
written once. So keeping it again, after a crash came between, changes nothing; the normal
course and recovery are the same code.
"""

from __future__ import annotations

from asyncio import Task, gather, get_running_loop
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from system.agents import event
from system.agents.agent import Agent, Owed, new_creation
from system.agents.effects import Spawn
from system.agents.history import History, objects
from system.agents.message import (
    UNANSWERED,
    USER,
    Message,
    MessageKind,
    error_about,
)
from system.agents.multiplexer import Multiplexer
from system.agents.reminders import Reminders
from system.agents.tree import Node, Tree
from system.errors import RuntimeRefused, StorageError, UnknownAgent
from system.ports import Host, Json, JsonObject
from system.sessions.session import SessionState
from system.sessions.session_store import SessionStore
from system.storage.framing import Framing
from system.storage.line import timestamp

SECOND_NS: Final = 1_000_000_000
LONGEST_PAUSE_NS: Final = 60 * SECOND_NS
USER_SESSION: Final = "0" * 32
USER_LOG: Final = "user/events.jsonl"

_CONTROLS: Final = {
    "gate": event.GATE,
    "ungate": event.UNGATE,
    "permit_turn": event.PERMIT_TURN,
}

TakeTurns: TypeAlias = Callable[[Agent], Coroutine[None, None, None]]


class Orchestrator:
    """All agents of one root, by agent id; USER is one of them, and has no turns.

    ``failures`` are exceptions that no part of the runtime expected. ``take_turns`` lets
    an agent run as long as it is runnable.
    """

    def __init__(
        self,
        host: Host,
        store: SessionStore,
        multiplexer: Multiplexer,
        framing: Framing,
    ) -> None:
        self.host = host
        self.store = store
        self.multiplexer = multiplexer
        self.tree = Tree()
        self.agents: dict[str, Agent] = {}
        self.failures: list[BaseException] = []
        self.take_turns: TakeTurns | None = None
        self.closing = False
        # Sessions that cannot be read in this lifetime: nobody knows what they were told. And
        # those of which too little is left for any lifetime.
        self.unserved: set[str] = set()
        self.lost: set[str] = set()
        self.framing = framing
        self.reminders = Reminders(host)

    @property
    def provider_names(self) -> Sequence[str]:
        """The providers that a child may be given to."""
        return sorted(self.multiplexer.pools)

    @property
    def user(self) -> Agent:
        """The agent that stands for the operator."""
        return self.agents[USER]

    def new_agent(self, agent_id: str, session_id: str, history: History | None = None) -> Agent:
        """Return an agent that is known from now on; without a history, none of it is durable."""
        path = self.log_path(session_id)
        store = None if agent_id == USER else self.store
        history = History() if history is None else history
        agent = Agent(self.host, store, agent_id, session_id, path, self.framing, history)
        self.agents[agent_id] = agent
        return agent

    def log_path(self, session_id: str) -> str:
        """Return where the log of a session stands."""
        if session_id == USER_SESSION:
            return USER_LOG
        return f"{self.store.directory_of(session_id)}/events.jsonl"

    def now(self) -> str:
        """Return the time as it stands in lines."""
        return timestamp(self.host.clock.wall_ns())

    # -- promises ------------------------------------------------------------------------

    async def keep(self, agent: Agent, turn: JsonObject) -> None:
        """Keep what a ``turn.complete`` line of ``agent`` promises to others."""
        touched: dict[str, Agent] = {}
        self.promise(agent, turn, touched)
        await self.tell(touched.values())
        for added in objects(turn.get("reminders")):
            self.remind(agent, str(added["reminder_id"]))
        if "cancelled" in turn:
            self.reminders.forget(agent)

    def promise(self, agent: Agent, turn: JsonObject, touched: dict[str, Agent]) -> None:
        """Note what a turn of ``agent`` owes to others, and add them to ``touched``."""
        for data in objects(turn["spawned"]):
            self._spawned(agent, Spawn.of_data(data), touched)
        for control in objects(turn.get("controls")):
            self._controlled(agent, control, touched)
        for data in objects(turn["outbox"]):
            self._owe_message(data, touched)
        for subscribed in objects(turn.get("subscribed")):
            self._owe_notice(agent, str(subscribed["subscription_id"]), touched)

    async def finish(self, agent: Agent) -> None:
        """Bring the end of an agent, which its log has, to everything else that shows it."""
        touched: dict[str, Agent] = {}
        self.owe_errors(agent, touched)
        self.reminders.forget(agent)
        for other in self.agents.values():
            for subscription_id, target in list(other.history.subscriptions.items()):
                if target == agent.agent_id:
                    self._owe_notice(other, subscription_id, touched)
        await self.tell(touched.values())
        with suppress(OSError, StorageError):
            # What the disk refuses now is left to the next boot.
            await self.retire(agent)

    async def return_dead(self, agent: Agent) -> None:
        """Tell the senders of messages that nobody will see."""
        touched: dict[str, Agent] = {}
        self.owe_errors(agent, touched)
        await self.tell(touched.values())

    def owe(self, agent: Agent, items: Iterable[Owed]) -> bool:
        """Note lines that are due in the log of ``agent`` and not there; whether there are any."""
        for item in items:
            if not agent.history.knows(item.key):
                agent.owed.setdefault(item.key, item)
        return bool(agent.owed or agent.creation)

    async def tell(self, touched: Iterable[Agent]) -> None:
        """Write everything that these agents are owed, each behind one barrier, side by side."""
        due = [agent for agent in touched if agent.owed or agent.creation]
        if len(due) == 1:
            await self._told(due[0])
        elif due:
            await gather(*(self._told(agent) for agent in due))

    async def _told(self, agent: Agent) -> None:
        if not agent.alive and agent.agent_id != USER:
            await self._bounce(agent)
            return
        try:
            await agent.tell()
        except (OSError, StorageError) as refused:
            agent.trouble = str(refused)
            self._tell_later(agent)
        except UnknownAgent:
            await self._bounce(agent)
        except RuntimeRefused:
            # It is stopped: the next boot keeps the promise.
            return
        else:
            await self.wake_or_rest(agent)

    async def wake_or_rest(self, agent: Agent) -> None:
        """Let an agent take its turns; one that takes none holds no descriptor."""
        self.wake(agent)
        if agent.running is None:
            await agent.rest()

    async def _bounce(self, agent: Agent) -> None:
        """Answer for an agent that ended before it could be told."""
        touched: dict[str, Agent] = {}
        owed, agent.owed = list(agent.owed.values()), {}
        for item in owed:
            if item.event == event.MESSAGE_ENQUEUED:
                message = Message.of_data(item.data)
                if message.kind is not MessageKind.BOOTSTRAP:
                    self._owe_error(message, "the recipient has ended", touched)
        await self.tell(touched.values())

    def _tell_later(self, agent: Agent) -> None:
        if agent.retrying is None and not agent.stopped and not self.closing:
            agent.retrying = self.task(self._tell_again(agent), f"tell {agent.name()}")

    async def _tell_again(self, agent: Agent) -> None:
        pause_ns = SECOND_NS
        try:
            while (agent.owed or agent.creation) and not agent.stopped and agent.alive:
                agent.awaits_retry = True
                try:
                    await self.host.clock.sleep(pause_ns)
                finally:
                    agent.awaits_retry = False
                pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)
                try:
                    await agent.tell()
                except (OSError, StorageError, RuntimeRefused) as refused:
                    agent.trouble = str(refused)
                else:
                    agent.trouble = ""
                if self.closing:
                    return
        finally:
            agent.retrying = None
        if not agent.alive:
            await self._bounce(agent)
        await self.wake_or_rest(agent)

    def _spawned(self, parent: Agent, spawn: Spawn, touched: dict[str, Agent]) -> None:
        child = self.agents.get(spawn.agent_id)
        if child is None:
            if spawn.session_id in self.lost:
                return
            if spawn.session_id in self.unserved:
                if spawn.agent_id not in parent.history.completed_children:
                    self.tree.hide(parent.agent_id, spawn.name)
                return
            child = self._new_child(parent, spawn)
        if not child.alive:
            return
        bootstrap = Message(
            spawn.bootstrap_id, parent.agent_id, spawn.agent_id, MessageKind.BOOTSTRAP,
            spawn.instructions, self.now(),
        )  # fmt: skip
        if self.owe(child, [_enqueued(bootstrap)]):
            touched[child.agent_id] = child

    def _new_child(self, parent: Agent, spawn: Spawn) -> Agent:
        child = self.new_agent(spawn.agent_id, spawn.session_id)
        facts: JsonObject = {
            "agent_id": spawn.agent_id,
            "name": spawn.name,
            "parent_session_id": parent.session_id,
            "instructions": spawn.instructions,
            "request_id": None,
        }
        child.creation = new_creation(
            spawn.session_id, spawn.provider, spawn.model, "", SessionState.SUSPENDED, facts
        )
        self.tree.add(Node(spawn.agent_id, spawn.session_id, spawn.name, parent.agent_id))
        return child

    def _controlled(self, agent: Agent, control: JsonObject, touched: dict[str, Agent]) -> None:
        target = self.agents.get(str(control["target"]))
        if target is None or not target.alive:
            return
        control_id = str(control["control_id"])
        data: JsonObject = {"control_id": control_id, "by": agent.agent_id}
        if self.owe(target, [Owed(control_id, _CONTROLS[str(control["op"])], data)]):
            touched[target.agent_id] = target

    def _owe_message(self, data: JsonObject, touched: dict[str, Agent]) -> None:
        recipient = self.agents.get(str(data["recipient"]))
        if recipient is None:
            # It is not served in this lifetime; the promise is kept in a later one.
            return
        if data["message_id"] in recipient.history.enqueued:
            return
        if recipient.history.ended:
            self._owe_error(Message.of_data(data), "the recipient has ended", touched)
            return
        # A line that is not ours would spoil the log of the recipient: this raises for one.
        Message.of_data(data)
        if self.owe(recipient, [Owed(str(data["message_id"]), event.MESSAGE_ENQUEUED, data)]):
            touched[recipient.agent_id] = recipient

    def owe_errors(self, agent: Agent, touched: dict[str, Agent]) -> None:
        """Note that the senders of messages that ``agent`` will never see must be told."""
        for message, reason in agent.history.unkept.values():
            self._owe_error(message, reason, touched)

    def owe_notices(self, agent: Agent, touched: dict[str, Agent]) -> None:
        """Note that ``agent`` must be told of those that it subscribed to and that have ended."""
        for subscription_id in list(agent.history.subscriptions):
            self._owe_notice(agent, subscription_id, touched)

    def _owe_error(self, message: Message, reason: str, touched: dict[str, Agent]) -> None:
        sender = self.agents.get(message.sender)
        if sender is None or sender.history.ended or message.kind in UNANSWERED:
            return
        error = error_about(message, reason, self.now())
        if self.owe(sender, [_enqueued(error)]):
            touched[sender.agent_id] = sender

    def _owe_notice(
        self, subscriber: Agent, subscription_id: str, touched: dict[str, Agent]
    ) -> None:
        target_id = subscriber.history.subscriptions.get(subscription_id)
        target = self.agents.get(target_id) if target_id is not None else None
        if target is None or not target.history.ended or subscriber.history.ended:
            return
        payload: Json = {
            "event": "terminated", "agent_id": target.agent_id, "name": target.name(),
        }  # fmt: skip
        notice = Message(
            f"{subscription_id}.notice", target.agent_id, subscriber.agent_id, MessageKind.NOTICE,
            payload, self.now(),
        )  # fmt: skip
        if self.owe(subscriber, [_enqueued(notice)]):
            touched[subscriber.agent_id] = subscriber

    async def retire(self, agent: Agent) -> None:
        """Close conversation and log of an agent that has ended, and let its record say so.

        Raises ``StorageError`` or ``OSError``; the next boot then does it.
        """
        await agent.rest()
        agent.history.exchanges.clear()
        if agent.record is None or agent.record.state is SessionState.TERMINATED:
            return
        pool = self.multiplexer.pools.get(agent.record.provider_name)
        if pool is not None:
            await pool.close(agent)
        await agent.save(SessionState.TERMINATED, agent.record.provider_state_blob)

    async def deliver(self, agent: Agent, message: Message) -> None:
        """Bring an agent a message that comes from its own log."""
        self.owe(agent, [_enqueued(message)])
        await self.tell([agent])

    def remind(self, agent: Agent, reminder_id: str) -> None:
        """Start the timer of a reminder, if it is still active."""
        if not self.closing:
            self.reminders.start(agent, reminder_id, self.task, self.deliver)

    # -- work ----------------------------------------------------------------------------

    def wake(self, agent: Agent) -> None:
        """Let an agent take its turns, if it has something to do and is not at it."""
        if self.take_turns is None or self.closing:
            return
        if agent.running is None and agent.runnable and agent.agent_id != USER:
            agent.running = self.task(self._turns(agent), f"turns of {agent.name()}")

    async def _turns(self, agent: Agent) -> None:
        assert self.take_turns is not None
        try:
            await self.take_turns(agent)
        finally:
            agent.running = None

    def task(self, work: Coroutine[None, None, None], name: str) -> Task[None]:
        """Run something beside everything else; what it raises unexpectedly is a failure."""
        task = get_running_loop().create_task(work, name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failures.append(failure)

    def stop_waiting(self) -> None:
        """Cancel everything that only waits for a time to come; what is at work goes on."""
        self.reminders.stop()
        for agent in self.agents.values():
            if agent.retrying is not None and agent.awaits_retry:
                agent.retrying.cancel()
            if agent.running is not None and agent.pausing:
                agent.running.cancel()

    def at_work(self) -> list[Task[None]]:
        """Return the tasks that take turns, or tell an agent what it is owed, or are about to."""
        tasks = self.reminders.tasks()
        for agent in self.agents.values():
            tasks += [task for task in (agent.running, agent.retrying) if task is not None]
        # One that is cancelled before its first step never gets to strike itself off.
        return [task for task in tasks if not task.done()]


def _enqueued(message: Message) -> Owed:
    return Owed(message.message_id, event.MESSAGE_ENQUEUED, message.data())
