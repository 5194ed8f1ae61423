"""Creation of root agents by the operator, once for each request id."""

from __future__ import annotations

from asyncio import Task, current_task
from collections.abc import Callable
from contextlib import suppress

from system.agents.agent import Agent
from system.agents.creation import new_creation
from system.agents.message import USER, check_payload
from system.agents.multiplexer import Pool
from system.agents.orchestrator import Orchestrator
from system.agents.tools import LONGEST_NAME
from system.agents.tree import Node
from system.durable.ended import ended_request
from system.errors import BadName, MayBeThere, StorageFull
from system.ports import Conversation, JsonObject, Opening, ProviderError
from system.sessions.session import SessionState
from system.storage.codec import check_texts


class RootCreation:
    """Creates root agents; ``on_created`` is called after each creation."""

    def __init__(self, orchestrator: Orchestrator, on_created: Callable[[], None]) -> None:
        self._orchestrator = orchestrator
        self._on_created = on_created
        self._under_way: dict[str, Task[str]] = {}
        self._by_request = {
            data.request_id: data.agent_id
            for agent in orchestrator.agents.values()
            if (data := agent.history.agent) is not None and data.request_id is not None
        }

    async def create(
        self, name: str, instructions: str, provider: str, model: str, request_id: str | None
    ) -> str:
        """Return the id of a new root agent, durably; raises as ``Runtime.create_agent``.

        The caller is a task of its own, which returns the id and is not cancelled: further calls
        with the same ``request_id`` wait for it.
        """
        if not _is_name(name):
            raise BadName(name, LONGEST_NAME)
        check_texts(name=name, instructions=instructions, provider=provider, model=model)
        if request_id is not None:
            check_texts(request_id=request_id)
        check_payload([name, instructions, model, request_id])
        if request_id is not None:
            if (state := self._orchestrator.state) is not None:
                row = await state.run(lambda each: ended_request(each, request_id))
                if row is not None:
                    return row.agent_id
            if request_id in self._by_request:
                return self._by_request[request_id]
            if request_id in self._under_way:
                return await self._under_way[request_id]
            if self._orchestrator.unserved:
                raise MayBeThere(request_id, ", ".join(sorted(self._orchestrator.unserved)))
        pool = self._orchestrator.multiplexer.pool(provider)
        self._orchestrator.tree.reserve(name)
        if request_id is not None:
            task: Task[str] | None = current_task()
            assert task is not None
            self._under_way[request_id] = task
        return await self._create(pool, name, instructions, model, request_id)

    async def _create(
        self, pool: Pool, name: str, instructions: str, model: str, request_id: str | None
    ) -> str:
        tree = self._orchestrator.tree
        try:
            agent = await self._new_root(pool, name, instructions, model, request_id)
        except (ProviderError, StorageFull, OSError):
            tree.release(name)
            if request_id is not None:
                del self._under_way[request_id]
            raise
        tree.add(Node(agent.agent_id, agent.session_id, name, None))
        if request_id is not None:
            self._by_request[request_id] = agent.agent_id
            del self._under_way[request_id]
        self._on_created()
        return agent.agent_id

    async def _new_root(
        self, pool: Pool, name: str, instructions: str, model: str, request_id: str | None
    ) -> Agent:
        orchestrator, ids = self._orchestrator, self._orchestrator.host.ids
        agent_id, session_id = ids.uuid_hex(), ids.uuid_hex()
        conversation = await pool.create(Opening(session_id, model, instructions))
        data: JsonObject = {
            "agent_id": agent_id,
            "name": name,
            "parent_session_id": None,
            "instructions": instructions,
            "request_id": request_id,
        }
        agent = orchestrator.new_agent(agent_id, session_id)
        try:
            agent.log.creation = new_creation(
                session_id, pool.name, model, conversation.identity(), SessionState.ACTIVE, data
            )
            await agent.log.write_queue()
        except (ProviderError, StorageFull, OSError):
            await self._undo(pool, agent, conversation)
            raise
        except BaseException:
            # The next boot decides whether it exists; until then its name is taken.
            orchestrator.tree.add(Node(agent_id, session_id, name, None))
            pool.give_up()
            with suppress(ProviderError):
                await conversation.stop()
            raise
        pool.adopt(agent, conversation)
        return agent

    async def _undo(self, pool: Pool, agent: Agent, conversation: Conversation) -> None:
        """Remove the files and the conversation of a creation that failed."""
        orchestrator = self._orchestrator
        pool.give_up()
        orchestrator.forget(agent)
        with suppress(ProviderError):
            await conversation.stop()
        agent.log.close()
        with suppress(OSError):
            # If it cannot be removed now, it is an orphan, which the next boot removes.
            await orchestrator.host.workers.run(lambda: orchestrator.store.remove(agent.session_id))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value != USER
