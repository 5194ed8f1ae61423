"""The multiplexer: many sessions share a few open conversations.

Each provider has a pool of slots, one for each open conversation. A turn holds the slot of its
session, and the conversation of a held slot is never closed. If all slots are taken, the least
recently used idle conversation is suspended; if all are held, further turns wait.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from system.agents import event
from system.agents.agent import Agent
from system.agents.provider_state import ProviderState
from system.errors import RuntimeRefused, StorageError, UnknownProvider
from system.ports import (
    Conversation,
    ConversationLost,
    Exchange,
    Opening,
    Provider,
    ProviderError,
)
from system.sessions.session import SessionState


@dataclass(slots=True)
class Slot:
    """An open conversation; ``held`` while a turn, or its closing, is under way."""

    agent: Agent
    conversation: Conversation
    held: bool = True


class WaitingLine:
    """Callers that wait for room, in the order of their coming; any object is the place of one.

    Only the first is woken when there may be room: to wake all of them, of which one gets it,
    would take quadratic time. A caller that is woken looks for room. If there is none, it waits
    again, and keeps its place; else it leaves, and the next one is woken, because there may be
    more room.
    """

    def __init__(self) -> None:
        self._places: dict[object, Future[None]] = {}

    async def wait(self, place: object) -> None:
        """Wait until ``wake``; a new place is the last one."""
        woken = self._places[place] = get_running_loop().create_future()
        await woken

    def wake(self) -> None:
        """Wake the first caller that waits."""
        for woken in self._places.values():
            if not woken.done():
                woken.set_result(None)
                return

    def leave(self, place: object) -> None:
        """Give up a place; without effect if its caller has not waited."""
        if self._places.pop(place, None) is not None:
            self.wake()


class Pool:
    """The slots of one provider."""

    def __init__(self, name: str, provider: Provider, slots: int) -> None:
        self.name = name
        self._provider = provider
        self._slots: Final = slots
        # The least recently used one first.
        self._open: dict[str, Slot] = {}
        # Slots that are reserved: for sessions whose conversation is being opened, and for
        # creations, which have no session yet.
        self._entering: set[str] = set()
        self._creating = 0
        # Callers that wait for any slot, and those that wait for the slot of one session.
        self._line = WaitingLine()
        self._waiting: list[Future[None]] = []

    async def hold(self, agent: Agent) -> Conversation:
        """Open the agent's conversation if necessary, and hold it until ``release``; return it.

        Raises ``ProviderError``, ``StorageError`` or ``OSError``; then nothing is held.
        """
        if (open_conversation := await self._held(agent)) is not None:
            return open_conversation
        self._entering.add(agent.session_id)
        try:
            conversation = await self._opened(agent)
        finally:
            self._entering.remove(agent.session_id)
            self._wake()
        self._open[agent.session_id] = Slot(agent, conversation)
        return conversation

    async def _held(self, agent: Agent) -> Conversation | None:
        """Hold the agent's conversation, or return None when there is room to open it."""
        place = object()
        try:
            while True:
                slot = self._open.get(agent.session_id)
                if slot is None:
                    if await self._has_room(place):
                        return None
                elif slot.held:
                    self._line.leave(place)
                    await self._wait()
                else:
                    slot.held = True
                    self._open[agent.session_id] = self._open.pop(agent.session_id)
                    return slot.conversation
        finally:
            self._line.leave(place)

    async def create(self, opening: Opening) -> Conversation:
        """Open a new conversation in a reserved slot; ``adopt`` or ``give_up`` must follow.

        Raises as ``hold``.
        """
        place = object()
        try:
            while not await self._has_room(place):
                pass
        finally:
            self._line.leave(place)
        self._creating += 1
        try:
            return await self._provider.create(opening)
        except BaseException:
            self.give_up()
            raise

    def adopt(self, agent: Agent, conversation: Conversation) -> None:
        """Put a created conversation into its reserved slot, idle."""
        self._open[agent.session_id] = Slot(agent, conversation, held=False)
        self.give_up()

    def give_up(self) -> None:
        """Free the slot that was reserved for a creation."""
        assert self._creating > 0
        self._creating -= 1
        self._wake()

    def release(self, agent: Agent) -> None:
        """Release the slot that ``hold`` took."""
        slot = self._open.get(agent.session_id)
        if slot is not None:
            slot.held = False
        self._wake()

    async def discard(self, agent: Agent) -> None:
        """Close a conversation without suspending it, because it may contain a turn that failed."""
        slot = self._open.pop(agent.session_id, None)
        self._wake()
        if slot is not None:
            with suppress(ProviderError):
                await slot.conversation.stop()

    async def close(self, agent: Agent) -> None:
        """Close the conversation of an agent that has ended, as soon as it is not held."""
        while (slot := self._open.get(agent.session_id)) is not None:
            if not slot.held:
                await self.discard(agent)
                return
            await self._wait()

    async def suspend(self, agent: Agent) -> None:
        """Close the agent's conversation, if one is open, as soon as it is not held.

        Raises ``StorageError`` or ``OSError``; the conversation is then still open.
        """
        while True:
            slot = self._open.get(agent.session_id)
            if slot is not None and not slot.held:
                await self._evict(slot)
                return
            if slot is None and agent.session_id not in self._entering:
                break
            await self._wait()
        if agent.alive:
            # The conversation was discarded after a failed turn, which leaves the record as it
            # is, or it was not opened because the disk refused the record.
            await agent.log.save_suspended()

    async def suspend_all(self) -> list[OSError | StorageError]:
        """Close every conversation; return the errors of records that could not be written."""
        refused: list[OSError | StorageError] = []
        for slot in list(self._open.values()):
            try:
                await self.suspend(slot.agent)
            except (OSError, StorageError) as error:
                refused.append(error)
                await self.discard(slot.agent)
        return refused

    async def identities(self) -> list[str]:
        """Return the names of the conversations that the provider keeps."""
        return list(await self._provider.identities())

    # -- making room ---------------------------------------------------------------------

    async def _has_room(self, place: object) -> bool:
        """Return True if a slot is free; else make one free, or wait, and return False."""
        if len(self._open) + len(self._entering) + self._creating < self._slots:
            return True
        idle = [slot for slot in self._open.values() if not slot.held]
        if not idle:
            await self._line.wait(place)
            return False
        refused: OSError | StorageError | None = None
        for slot in idle:
            if slot.held or self._open.get(slot.agent.session_id) is not slot:
                return False
            try:
                await self._evict(slot)
            except (OSError, StorageError) as error:
                refused = error
            else:
                return False
        assert refused is not None
        raise refused

    async def _evict(self, slot: Slot) -> None:
        agent = slot.agent
        slot.held = True
        try:
            blob, identity = b"", agent.history.identity
            with suppress(ProviderError):
                identity = slot.conversation.identity()
                blob = await slot.conversation.suspend()
            state = ProviderState(identity, agent.history.turn_count, blob).encoded()
            # The slot is freed only after the record is durable: otherwise the next boot would
            # not find the blob of this suspension.
            await agent.log.save(SessionState.SUSPENDED, state)
            if agent.alive:
                with suppress(OSError, StorageError, RuntimeRefused):
                    await agent.log.append_unsynced(
                        [(event.SUSPEND_RESULT, {"state_size": len(state)})]
                    )
            # The slot is free without a further wait, so that the caller gets it.
            await agent.log.park()
            del self._open[agent.session_id]
        finally:
            slot.held = False
            self._wake()
        with suppress(ProviderError):
            await slot.conversation.stop()

    async def _opened(self, agent: Agent) -> Conversation:
        history, state = agent.history, _state_of(agent)
        restored = bool(state.identity or history.turn_count)
        conversation = await self._restored(agent, state) if restored else None
        if conversation is None:
            exchanges = await agent.log.conversation()
            conversation = await self._provider.create(opening_of(agent, exchanges))
        identity = conversation.identity()
        try:
            # The identity is durable before the first prompt, so that a crash cannot leak it.
            fresh = identity == state.identity and state.turns == history.turn_count
            kept = state if fresh else ProviderState(identity)
            await agent.log.save(SessionState.ACTIVE, kept.encoded())
            if restored or identity != history.identity:
                model = history.session.model if history.session is not None else ""
                await agent.log.append_unsynced([(event.SESSION_RESTORED, {
                    "provider": self.name, "model": model, "identity": identity,
                })])  # fmt: skip
        except BaseException:
            with suppress(ProviderError):
                await conversation.stop()
            raise
        return conversation

    async def _restored(self, agent: Agent, state: ProviderState) -> Conversation | None:
        blob = state.blob if state.turns == agent.history.turn_count else b""
        exchanges = agent.history.exchanges
        if not (state.identity or blob):
            # The provider keeps nothing else of the conversation.
            exchanges = await agent.log.conversation()
        try:
            opening = opening_of(agent, exchanges)
            return await self._provider.restore(opening, state.identity, blob)
        except ConversationLost:
            return None

    async def _wait(self) -> None:
        """Wait until a slot has changed."""
        woken: Future[None] = get_running_loop().create_future()
        self._waiting.append(woken)
        await woken

    def _wake(self) -> None:
        """Let callers continue after a slot has changed; room is for the first in the line."""
        self._line.wake()
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)


class Multiplexer:
    """The pools by the name of their provider."""

    def __init__(self, providers: Mapping[str, Provider], slots: int) -> None:
        self.pools: Final = {
            name: Pool(name, provider, slots) for name, provider in providers.items()
        }

    async def hold(self, agent: Agent) -> tuple[Pool, Conversation]:
        """Return the pool of the agent's provider, and its conversation as ``Pool.hold`` does.

        Raises ``UnknownProvider``, and as ``Pool.hold``.
        """
        session = agent.history.session
        assert session is not None, "an agent without a session is stopped"
        pool = self.pool(session.provider)
        return pool, await pool.hold(agent)

    def pool(self, provider_name: str) -> Pool:
        """Return the pool of a provider; ``UnknownProvider`` names the known ones."""
        try:
            return self.pools[provider_name]
        except KeyError:
            raise UnknownProvider(provider_name, ", ".join(sorted(self.pools))) from None


def opening_of(agent: Agent, exchanges: Sequence[Exchange]) -> Opening:
    """Return the opening of the agent's conversation, computed from its log alone."""
    session = agent.history.session
    assert session is not None
    return Opening(agent.session_id, session.model, session.system_prompt, tuple(exchanges))


def _state_of(agent: Agent) -> ProviderState:
    """Return the state in the record; if it has no identity, the identity in the log is used."""
    kept = agent.log.record.provider_state_blob if agent.log.record is not None else b""
    state = ProviderState.of_encoded(kept)
    if state.identity:
        return state
    return ProviderState(agent.history.identity, state.turns, state.blob)
