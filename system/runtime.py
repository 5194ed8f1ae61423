"""The runtime: opens a root, recovers it, runs its agents, and serves the operator.

    runtime = await Runtime.open(host, {"scripted": ScriptedProvider()})
    agent_id = await runtime.create_agent("Ada", instructions="Answer briefly.")
    await runtime.send(agent_id, "Good morning")
    await runtime.idle()
    await runtime.close()

The effect of a call is durable when the call returns. A call that raises has changed nothing,
except after ``LogStopped`` and ``OSError``: then the next boot decides. Cancelling a caller, or
a timeout, does not stop its call.
"""

from __future__ import annotations

from asyncio import wait
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from system.activity_calls import ActivityCalls
from system.agents import event
from system.agents.acknowledgement import acknowledge
from system.agents.agent import Agent
from system.agents.dispatcher import SNAPSHOT_LINES, Dispatcher
from system.agents.durable_work import DurableWork
from system.agents.feeder import Feeder
from system.agents.history import OPERATOR
from system.agents.message import USER, Message, MessageKind, check_payload
from system.agents.multiplexer import Multiplexer
from system.agents.orchestrator import SECOND_NS, Orchestrator
from system.agents.root_creation import RootCreation
from system.agents.turn_recorder import RecordingOptions
from system.agents.turns import Turns
from system.agents.view import RuntimeView, view_of
from system.collector import CollectionOptions, Collector
from system.durable.back_off import MOST_ATTEMPTS
from system.durable.emitter import checked_spec
from system.durable.trigger import Emitted, TriggerSpec
from system.errors import (
    AgentStopped,
    Closed,
    HasChildren,
    StorageError,
    UnknownAgent,
    UnknownMessage,
)
from system.operator_calls import OperatorCalls, uncancellable
from system.option_check import check_kind, check_least, check_member, check_method
from system.ports import Host, Json, Provider
from system.providers.bounded import bounded
from system.recording.wal_store import WalExecutionStore
from system.recovery.recovery import recover
from system.recovery.resume import Resume
from system.recovery.root_recovery import RootRecovery
from system.router import Router
from system.schedule_calls import ScheduleCalls
from system.sessions.session_store import SessionStore
from system.storage.codec import check_texts, is_plain_text
from system.storage.framing import Framing
from system.trigger_calls import TriggerCalls

_RECORDED: Final = RecordingOptions()
_COLLECTED: Final = CollectionOptions()


@dataclass(frozen=True, slots=True)
class Options:
    """``slots`` is the number of conversations that may be open, for each provider.

    ``turn_timeout_ns`` bounds the answer of a provider in one turn, ``provider_timeout_ns``
    each other call of a provider and each call of the router, both in nanoseconds.
    ``recording`` is None if executions are not recorded. A log with more than
    ``snapshot_lines`` lines after its last snapshot begins a new segment. ``collection`` says
    when agents that have ended are collected; with None they are kept. A trigger that was
    claimed ``most_attempts`` times without a result is DEAD. ``router`` chooses the agent for
    triggers without a session, if there are several root agents.
    """

    slots: int = 8
    framing: Framing = Framing.FRAMED
    resume: Resume = Resume.ALL
    turn_timeout_ns: int = 600 * SECOND_NS
    provider_timeout_ns: int = 60 * SECOND_NS
    recording: RecordingOptions | None = _RECORDED
    snapshot_lines: int = SNAPSHOT_LINES
    collection: CollectionOptions | None = _COLLECTED
    most_attempts: int = MOST_ATTEMPTS
    router: Router | None = None

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for an option of a wrong type, or below its least value."""
        check_least(
            1, slots=self.slots, turn_timeout_ns=self.turn_timeout_ns,
            provider_timeout_ns=self.provider_timeout_ns, most_attempts=self.most_attempts,
        )  # fmt: skip
        check_least(0, snapshot_lines=self.snapshot_lines)
        check_kind(RecordingOptions, recording=self.recording)
        check_kind(CollectionOptions, collection=self.collection)
        check_member(Framing, framing=self.framing)
        check_member(Resume, resume=self.resume)
        check_method("route", router=self.router)


_DEFAULTS: Final = Options()


class Runtime:
    """One lifetime of the runtime on one root.

    ``report`` is the recovery report; ``calls`` are the operator's calls under way.
    """

    def __init__(
        self,
        recovery: RootRecovery,
        turns: Turns,
        options: Options = _DEFAULTS,
    ) -> None:
        self.report = recovery.report
        self.calls = OperatorCalls()
        self._host = recovery.host
        self._root = recovery.root
        self._orchestrator = recovery.orchestrator
        # About the messages that the recovery has dispatched, ``resume`` decides.
        self._orchestrator.woken.clear()
        self._dispatcher = recovery.dispatcher
        self._turns = turns
        self._resume = options.resume
        self._feeder = Feeder(recovery.dispatcher, options.router, options.provider_timeout_ns)
        # Triggers without a session may wait for a root agent.
        self._creation = RootCreation(self._orchestrator, self._feeder.feed_now)
        self._collector: Collector | None = None
        if options.collection is not None:
            self._collector = Collector(recovery.dispatcher, options.collection, recovery.report)

    @classmethod
    async def recover(
        cls, host: Host, providers: Mapping[str, Provider], options: Options = _DEFAULTS
    ) -> Runtime:
        """Lock and recover the root of ``host``; no turn runs before ``start``.

        Raises ``NotARoot``, ``RootInUse``, ``StorageError`` or ``OSError``.
        """
        patient = bounded(providers, host.clock, options.provider_timeout_ns)
        multiplexer = Multiplexer(patient, options.slots)
        orchestrator = Orchestrator(
            host, SessionStore(host), multiplexer, options.framing, options.most_attempts
        )
        dispatcher = Dispatcher(orchestrator, options.snapshot_lines)
        recording = options.recording
        recovery = await recover(
            dispatcher, is_recording=recording is not None, resume=options.resume
        )
        turns = Turns(dispatcher, options.turn_timeout_ns, recording or _RECORDED)
        return cls(recovery, turns, options)

    @classmethod
    async def open(
        cls, host: Host, providers: Mapping[str, Provider], options: Options = _DEFAULTS
    ) -> Runtime:
        """Recover and start; raises as ``recover``."""
        runtime = await cls.recover(host, providers, options)
        runtime.start()
        return runtime

    @property
    def records(self) -> WalExecutionStore | None:
        """The records of all executions; None if they are not recorded."""
        recording, clock = self._orchestrator.recording, self._host.clock
        return None if recording is None else WalExecutionStore(recording, clock, self._open)

    @property
    def failures(self) -> list[BaseException]:
        """Exceptions of background tasks; empty unless the runtime has a bug."""
        return self._orchestrator.failures

    def start(self) -> None:
        """Wake the agents that ``options.resume`` selects, and those with a message since recovery.

        From now on, triggers wake agents too.

        Raises ``Closed``.
        """
        orchestrator, durable = self._open(), self._durable()
        orchestrator.take_turns = self._turns.take
        for node in orchestrator.tree:
            is_resumed = self._resume.includes(is_root=node.parent_id is None)
            if is_resumed or node.agent_id in orchestrator.woken:
                orchestrator.wake(orchestrator.agents[node.agent_id])
        orchestrator.on_end = self._ended
        if self._collector is not None:
            self._collector.start()
        orchestrator.activities.start(orchestrator.task, durable.to_perform)
        durable.on_change = self._feeder.arm
        self._feeder.feed_now()

    def _ended(self, agent: Agent) -> None:
        if self._collector is not None:
            self._collector.ended(agent)
        self._feeder.feed_now()

    # -- durable work --------------------------------------------------------------------

    @uncancellable
    async def emit(self, spec: TriggerSpec, trigger_id: str | None = None) -> Emitted:
        """Emit a trigger for an agent, now or at a time; it is durable when this returns.

        Returns the id of the trigger, and whether this call has created it: a repeated
        ``trigger_id``, or a key that is taken, changes nothing. No provider is called. Raises
        ``BadTrigger``, ``KeyOfAnotherSource``, ``NotAnOccurrence``, ``NoRecipient``,
        ``NotPlainJson``, ``PayloadTooLarge``, ``StorageError`` or ``OSError``.
        """
        durable, checked = self._durable(), checked_spec(spec)
        stores = await durable.opened()
        return await durable.run(
            lambda transaction: stores.emitter.emit_checked(transaction, checked, trigger_id)
        )

    @property
    def triggers(self) -> TriggerCalls:
        """The calls about triggers that wait or have stopped."""
        return TriggerCalls(self.calls, self._durable)

    @property
    def activities(self) -> ActivityCalls:
        """The calls about activities: irreversible actions, each performed once."""
        return ActivityCalls(self.calls, self._open)

    @property
    def schedules(self) -> ScheduleCalls:
        """The calls about schedules, which emit triggers at their times."""
        return ScheduleCalls(self.calls, self._durable)

    def _durable(self) -> DurableWork:
        return self._open().durable

    # -- the operator --------------------------------------------------------------------

    @uncancellable
    async def create_agent(
        self,
        name: str,
        instructions: str = "",
        provider: str = "scripted",
        model: str = "",
        request_id: str | None = None,
    ) -> str:
        """Create a root agent; it is durable when its id is returned.

        The same ``request_id`` gives the same agent, also after a crash. While the first call
        with it is under way, further calls share its result. Raises ``NameTaken``,
        ``MayBeThere``, ``BadName``, ``UnknownProvider``, ``NotPlainJson``,
        ``PayloadTooLarge``, ``ProviderError``, ``StorageError`` or ``OSError``.
        """
        self._open()
        return await self._creation.create(name, instructions, provider, model, request_id)

    @uncancellable
    async def send(self, agent_id: str, payload: Json, message_id: str | None = None) -> str:
        """Send a message from USER; it is durable when its id is returned.

        A second call with the same ``message_id`` changes nothing. Raises ``UnknownAgent``,
        ``AgentStopped``, ``NotPlainJson``, ``PayloadTooLarge``, ``StorageError``, ``OSError``.
        """
        orchestrator = self._open()
        agent = self._living(agent_id)
        if message_id is not None:
            check_texts(message_id=message_id)
            check_payload(message_id)
        key = message_id if message_id is not None else self._host.ids.uuid_hex()
        message = Message.checked(self._host.clock, key, USER, agent_id, MessageKind.TEXT, payload)
        is_known = partial(orchestrator.durable.knows_id, agent.session_id, key)
        await agent.log.receive(message, is_known if message_id is not None else None)
        await orchestrator.wake_or_park(agent)
        return key

    @uncancellable
    async def terminate(self, agent_id: str) -> None:
        """End an agent, between two of its turns; that is durable when this returns.

        Senders of messages that it has not read get an error. Raises ``UnknownAgent``,
        ``HasChildren``, ``AgentStopped``, ``StorageError`` or ``OSError``.
        """
        orchestrator = self._open()
        agent = self._living(agent_id)
        async with agent.work.turn:
            self._living(agent_id)
            if children := orchestrator.tree.dependants(agent_id):
                raise HasChildren(orchestrator.tree.names[agent_id], ", ".join(children))
            await agent.log.commit(
                lambda: [event.terminated(agent_id, OPERATOR, list(agent.history.pending))]
            )
            orchestrator.tree.end(agent_id)
        await self._dispatcher.finish(agent)

    @uncancellable
    async def suspend(self, agent_id: str) -> None:
        """Close the agent's conversation after the turn under way, and write that to its record.

        Raises ``UnknownAgent``, ``AgentStopped``, ``UnknownProvider``, ``StorageError`` or
        ``OSError``.
        """
        orchestrator = self._open()
        agent = self._living(agent_id)
        session = agent.history.session
        if session is None:
            raise AgentStopped(agent.name(), agent.log.stopped or "it was never created")
        await orchestrator.multiplexer.pool(session.provider).suspend(agent)

    @uncancellable
    async def acknowledge(self, message_id: str) -> None:
        """Mark a message to USER as read by the operator; durable when this returns.

        A repetition changes nothing, for at least thirty days; after that it may raise
        ``UnknownMessage``. Raises ``UnknownMessage``, ``StorageError`` or ``OSError``.
        """
        if not is_plain_text(message_id):
            raise UnknownMessage(message_id)
        await acknowledge(self._open(), message_id)

    def is_taken(self, name: str) -> bool:
        """Whether a living agent has this name, or one that is being created."""
        return is_plain_text(name) and self._orchestrator.tree.is_taken(name)

    def view(self) -> RuntimeView:
        """Return the durable state of this moment."""
        return view_of(self._orchestrator)

    async def idle(self) -> None:
        """Return when no agent takes a turn or retries; future triggers are not waited for."""
        agents = self._orchestrator.agents
        while busy := [
            *(task for agent in agents.values() for task in agent.work.tasks()),
            *self._orchestrator.activities.tasks(),
            *self._feeder.tasks(),
        ]:
            await wait(busy)

    @uncancellable
    async def close(self) -> None:
        """Wait for the turns under way, suspend every conversation, and free the lock.

        Raises ``StorageError`` or ``OSError`` when a record could not be written; everything
        is closed nevertheless, and the next boot repairs the record.
        """
        orchestrator = self._open()
        orchestrator.closing = True
        orchestrator.stop_waiting()
        collector = self._collector
        if collector is not None:
            collector.stop()
        self._feeder.stop()
        while tasks := [
            *orchestrator.at_work(),
            *self.calls.others(),
            *(collector.tasks() if collector is not None else ()),
            *self._feeder.tasks(),
        ]:
            await wait(tasks)
        refused: list[OSError | StorageError] = []
        try:
            for pool in orchestrator.multiplexer.pools.values():
                refused += await pool.suspend_all()
            if orchestrator.recording is not None:
                try:
                    await orchestrator.recording.close()
                except (OSError, StorageError) as error:
                    refused.append(error)
        finally:
            for agent in orchestrator.agents.values():
                agent.log.close()
            if orchestrator.state is not None:
                orchestrator.state.close()
            self._root.close()
        if refused:
            raise refused[0]

    def _open(self) -> Orchestrator:
        if self._orchestrator.closing:
            raise Closed("the runtime was closed; open it again")
        return self._orchestrator

    def _living(self, agent_id: str) -> Agent:
        try:
            node = self._orchestrator.tree.nodes.get(agent_id)
        except TypeError:
            # It has no hash.
            node = None
        if node is None:
            raise UnknownAgent(agent_id)
        if not node.alive:
            raise UnknownAgent(agent_id, "it has ended")
        return self._orchestrator.agents[agent_id]
