"""The runtime: opens a root, recovers it, runs its agents, and is what the operator talks to.

    runtime = await Runtime.open(host, {"scripted": ScriptedProvider()})
    agent_id = await runtime.create_agent("Ada", instructions="Answer briefly.")
    await runtime.send(agent_id, "Good morning")
    await runtime.idle()
    await runtime.close()

What a call returned is durable (S-01). A call that raises has changed nothing, except after
``LogStopped`` and ``OSError``: then the next boot knows. A caller that does not wait for the
end of a call (it is cancelled, or a timeout comes) does not stop it: the call goes on.
"""

from __future__ import annotations

from asyncio import Task, shield, wait
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

from system.agents import event
from system.agents.agent import Agent, Event, new_creation
from system.agents.history import OPERATOR
from system.agents.message import USER, Message, MessageKind, check_payload
from system.agents.multiplexer import Multiplexer, Pool
from system.agents.orchestrator import SECOND_NS, Orchestrator
from system.agents.tools import LONGEST_NAME
from system.agents.tree import Node
from system.agents.turns import Turns
from system.agents.view import RuntimeView, view_of
from system.errors import (
    AgentStopped,
    BadName,
    Closed,
    HasChildren,
    MayBeThere,
    NotPlainJson,
    StorageError,
    StorageFull,
    UnknownAgent,
    UnknownMessage,
)
from system.operator_calls import OperatorCalls, uncancellable
from system.ports import Conversation, Host, Json, JsonObject, Opening, Provider, ProviderError
from system.providers.bounded import bounded
from system.recovery.recovery import Recovery
from system.sessions.session import SessionState
from system.sessions.session_store import SessionStore
from system.storage.framing import Framing


class Resume(Enum):
    """Which agents with work to do are woken by a boot; the others wait for a new message."""

    ALL = "all"
    ROOTS = "roots"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Options:
    """``slots``: conversations open at a time, of each provider.

    ``turn_timeout_ns`` bounds the answer of a provider in one turn, ``provider_timeout_ns``
    each other call of one, both in nanoseconds.
    """

    slots: int = 8
    framing: Framing = Framing.FRAMED
    resume: Resume = Resume.ALL
    turn_timeout_ns: int = 600 * SECOND_NS
    provider_timeout_ns: int = 60 * SECOND_NS


_DEFAULTS: Final = Options()


class Runtime:
    """One lifetime of the runtime on one root.

    ``report`` says what recovery found; ``calls`` are those of the operator that are under way.
    """

    def __init__(self, recovery: Recovery, turns: Turns, resume: Resume) -> None:
        self.report = recovery.report
        self._host = recovery.host
        self._root = recovery.root
        self._orchestrator = orchestrator = recovery.orchestrator
        self._turns = turns
        self._resume = resume
        self.calls = OperatorCalls()
        self._creating: dict[str, Task[str]] = {}
        self._by_request = {
            facts.request_id: facts.agent_id
            for agent in orchestrator.agents.values()
            if (facts := agent.history.agent) is not None and facts.request_id is not None
        }

    @classmethod
    async def recover(
        cls, host: Host, providers: Mapping[str, Provider], options: Options = _DEFAULTS
    ) -> Runtime:
        """Lock and recover the root of ``host``; no turn runs before ``start``.

        Raises ``NotARoot``, ``RootInUse``, ``NewerFormat``, ``StorageFull`` or ``OSError``.
        """
        patient = bounded(providers, host.clock, options.provider_timeout_ns)
        multiplexer = Multiplexer(patient, options.slots)
        orchestrator = Orchestrator(host, SessionStore(host), multiplexer, options.framing)
        recovery = Recovery(orchestrator)
        await recovery.run()
        return cls(recovery, Turns(orchestrator, options.turn_timeout_ns), options.resume)

    @classmethod
    async def open(
        cls, host: Host, providers: Mapping[str, Provider], options: Options = _DEFAULTS
    ) -> Runtime:
        """Recover and start; raises as ``recover``."""
        runtime = await cls.recover(host, providers, options)
        runtime.start()
        return runtime

    @property
    def failures(self) -> list[BaseException]:
        """What was raised where nothing should be; empty as long as the runtime is right."""
        return self._orchestrator.failures

    def start(self) -> None:
        """Let the agents run that have something to do, as ``options.resume`` says."""
        orchestrator, resume = self._orchestrator, self._resume
        orchestrator.take_turns = self._turns.take
        for node in orchestrator.tree:
            agent = orchestrator.agents[node.agent_id]
            for reminder_id in list(agent.history.reminders):
                orchestrator.remind(agent, reminder_id)
            if resume is Resume.ALL or (resume is Resume.ROOTS and node.parent_id is None):
                orchestrator.wake(agent)

    # -- the operator --------------------------------------------------------------------

    async def create_agent(
        self,
        name: str,
        instructions: str = "",
        provider: str = "scripted",
        model: str = "",
        request_id: str | None = None,
    ) -> str:
        """Create a root agent; it is durable when its id is returned.

        The same ``request_id`` gives the same agent, also after a crash, and while the first
        call with it is under way; what that one raises, this one does too. Raises
        ``NameTaken``, ``MayBeThere``, ``BadName``, ``UnknownProvider``, ``NotPlainJson``,
        ``PayloadTooLarge``, ``ProviderError``, ``StorageError`` or ``OSError``.
        """
        orchestrator = self._open()
        if not _is_name(name):
            raise BadName(name, LONGEST_NAME)
        _check_texts(instructions=instructions, provider=provider, model=model)
        if request_id is not None:
            _check_texts(request_id=request_id)
        check_payload([name, instructions, model, request_id])
        if request_id is not None and request_id in self._by_request:
            return self._by_request[request_id]
        if request_id is not None and request_id in self._creating:
            return await shield(self._creating[request_id])
        if request_id is not None and orchestrator.unserved:
            raise MayBeThere(request_id, ", ".join(sorted(orchestrator.unserved)))
        pool = orchestrator.multiplexer.pool(provider)
        orchestrator.tree.reserve(name)
        creation = self._create(pool, name, instructions, model, request_id)
        creating = self.calls.begin(creation, "create_agent")
        if request_id is not None:
            self._creating[request_id] = creating
        return await shield(creating)

    async def _create(
        self, pool: Pool, name: str, instructions: str, model: str, request_id: str | None
    ) -> str:
        orchestrator = self._orchestrator
        try:
            agent = await self._created(pool, name, instructions, model, request_id)
        except (ProviderError, StorageFull, OSError):
            orchestrator.tree.release(name)
            if request_id is not None:
                del self._creating[request_id]
            raise
        orchestrator.tree.add(Node(agent.agent_id, agent.session_id, name, None))
        if request_id is not None:
            self._by_request[request_id] = agent.agent_id
            del self._creating[request_id]
        return agent.agent_id

    async def _created(
        self, pool: Pool, name: str, instructions: str, model: str, request_id: str | None
    ) -> Agent:
        orchestrator, ids = self._orchestrator, self._host.ids
        agent_id, session_id = ids.uuid_hex(), ids.uuid_hex()
        conversation = await pool.create(Opening(session_id, model, instructions))
        facts: JsonObject = {
            "agent_id": agent_id,
            "name": name,
            "parent_session_id": None,
            "instructions": instructions,
            "request_id": request_id,
        }
        agent = orchestrator.new_agent(agent_id, session_id)
        try:
            identity = conversation.identity()
            agent.creation = new_creation(
                session_id, pool.name, model, identity, SessionState.ACTIVE, facts
            )
            await agent.tell()
        except (ProviderError, StorageFull, OSError):
            await self._not_created(pool, agent, conversation)
            raise
        except BaseException:
            # Whether it exists, the next boot will know; until then its name is taken.
            orchestrator.tree.add(Node(agent_id, session_id, name, None))
            pool.give_up()
            with suppress(ProviderError):
                await conversation.stop()
            raise
        pool.adopt(agent, conversation)
        return agent

    async def _not_created(self, pool: Pool, agent: Agent, conversation: Conversation) -> None:
        """Take back what a creation has made before the disk refused the rest."""
        orchestrator = self._orchestrator
        pool.give_up()
        del orchestrator.agents[agent.agent_id]
        with suppress(ProviderError):
            await conversation.stop()
        with suppress(OSError):
            # What cannot be removed now is an orphan, and the next boot removes it.
            agent.close()
            await self._host.workers.run(lambda: orchestrator.store.remove(agent.session_id))

    @uncancellable
    async def send(self, agent_id: str, payload: Json, message_id: str | None = None) -> str:
        """Send a message from USER; it is durable when its id is returned.

        The same ``message_id`` again changes nothing. Raises ``UnknownAgent``,
        ``AgentStopped``, ``NotPlainJson``, ``PayloadTooLarge``, ``StorageError``, ``OSError``.
        """
        orchestrator = self._open()
        agent = self._living(agent_id)
        check_payload(payload)
        if message_id is not None:
            _check_texts(message_id=message_id)
            check_payload(message_id)
        key = message_id if message_id is not None else self._host.ids.uuid_hex()
        message = Message(key, USER, agent_id, MessageKind.TEXT, payload, orchestrator.now())

        def make() -> list[Event]:
            if agent.history.ended:
                raise UnknownAgent(agent_id, "it has ended")
            if agent.history.knows(key):
                return []
            return [(event.MESSAGE_ENQUEUED, message.data())]

        await agent.commit(make)
        await orchestrator.wake_or_rest(agent)
        return key

    @uncancellable
    async def terminate(self, agent_id: str) -> None:
        """End an agent, between two of its turns; that is durable when this returns.

        Senders of messages that it has not seen are told. Raises ``UnknownAgent``,
        ``HasChildren``, ``AgentStopped``, ``StorageError`` or ``OSError``.
        """
        orchestrator = self._open()
        agent = self._living(agent_id)
        async with agent.turn:
            self._living(agent_id)
            if children := orchestrator.tree.dependants(agent_id):
                raise HasChildren(orchestrator.tree.names[agent_id], ", ".join(children))

            def make() -> list[Event]:
                returned: list[Json] = list(agent.history.pending)
                ended: JsonObject = {
                    "agent_id": agent_id, "reason": OPERATOR, "returned": returned,
                }  # fmt: skip
                return [(event.AGENT_TERMINATED, ended)]

            await agent.commit(make)
            orchestrator.tree.end(agent_id)
        await orchestrator.finish(agent)

    @uncancellable
    async def suspend(self, agent_id: str) -> None:
        """Close the agent's conversation after the turn under way; its record says so.

        Raises ``UnknownAgent``, ``AgentStopped``, ``UnknownProvider``, ``StorageError`` or
        ``OSError``.
        """
        orchestrator = self._open()
        agent = self._living(agent_id)
        session = agent.history.session
        if session is None:
            raise AgentStopped(agent.name(), agent.stopped or "it was never born")
        await orchestrator.multiplexer.pool(session.provider).suspend(agent)

    @uncancellable
    async def acknowledge(self, message_id: str) -> None:
        """Say that the operator has seen a message to USER; that is durable when this returns.

        Raises ``UnknownMessage``, ``StorageError`` or ``OSError``.
        """
        user = self._open().user

        def make() -> list[Event]:
            if not _is_text(message_id) or message_id not in user.history.enqueued:
                raise UnknownMessage(message_id)
            if message_id not in user.history.pending:
                return []
            return [(event.MESSAGE_DELIVERED, {"message_id": message_id})]

        await user.commit(make)

    def is_taken(self, name: str) -> bool:
        """Whether a name is not free: an agent has it, or is about to be born with it."""
        return self._orchestrator.tree.is_taken(name)

    def view(self) -> RuntimeView:
        """Return what there is at this moment: durable facts only."""
        return view_of(self._orchestrator)

    async def idle(self) -> None:
        """Return when no agent has anything to do; what only waits for a time does not count."""
        while busy := [
            task
            for agent in self._orchestrator.agents.values()
            for task in (agent.running, agent.retrying)
            if task is not None
        ]:
            await wait(busy)

    @uncancellable
    async def close(self) -> None:
        """Let the turns under way end, close every conversation, and free the lock.

        Raises ``StorageError`` or ``OSError`` when a record could not be written; everything
        is closed nevertheless, and the next boot repairs the record.
        """
        orchestrator = self._open()
        orchestrator.closing = True
        orchestrator.stop_waiting()
        while tasks := [*orchestrator.at_work(), *self.calls.others()]:
            await wait(tasks)
        refused: list[OSError | StorageError] = []
        try:
            for pool in orchestrator.multiplexer.pools.values():
                refused += await pool.suspend_all()
        finally:
            for agent in orchestrator.agents.values():
                with suppress(OSError):
                    agent.close()
            self._root.close()
        if refused:
            raise refused[0]

    def _open(self) -> Orchestrator:
        if self._orchestrator.closing:
            raise Closed("the runtime was closed; open it again")
        return self._orchestrator

    def _living(self, agent_id: str) -> Agent:
        node = self._orchestrator.tree.nodes.get(agent_id) if _is_text(agent_id) else None
        if node is None:
            raise UnknownAgent(agent_id)
        if not node.alive:
            raise UnknownAgent(agent_id, "it has ended")
        return self._orchestrator.agents[agent_id]


# Callers may have no type checker, and what is no text would come back from a log as one.


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value != USER


def _check_texts(**values: object) -> None:
    for place, value in values.items():
        if not _is_text(value):
            raise NotPlainJson(place, f"{value!r:.200} is not a text")
