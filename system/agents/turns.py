"""Turns: present what is pending, ask the provider, commit one line, apply it.

Turns of one agent follow one another, those of different agents overlap. Until the line is
durable nothing of the turn has happened, so whatever fails before it is simply repeated.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Sequence
from typing import Final

from system.agents import event
from system.agents.agent import Agent, Event
from system.agents.message import Message, prompt_of
from system.agents.multiplexer import Pool
from system.agents.orchestrator import LONGEST_PAUSE_NS, SECOND_NS, Orchestrator
from system.agents.tools import TurnTools
from system.errors import (
    LineTooLarge,
    NotPlainJson,
    RuntimeRefused,
    StorageError,
)
from system.ports import Conversation, Json, JsonObject, ProviderError
from system.providers.bounded import was_cancelled
from system.storage.line import LARGEST_BYTES

MOST_PROMPT_BYTES: Final = LARGEST_BYTES // 4
"""A prompt stands as a text in a line, which may double it."""

MOST_PRESENTATIONS: Final = 5
"""How often a message is shown to an agent whose turns all fail, before it is put aside."""


class TurnFailed(Exception):
    """The turn did not happen; ``reason`` says why."""


class Turns:
    """Takes turns for agents; ``turn_timeout_ns`` bounds one call of a provider.

    ``tools`` makes what an agent may call in a turn.
    """

    def __init__(
        self,
        orchestrator: Orchestrator,
        turn_timeout_ns: int,
        tools: type[TurnTools] = TurnTools,
    ) -> None:
        self._orchestrator = orchestrator
        self._timeout_ns = turn_timeout_ns
        self._tools = tools

    async def take(self, agent: Agent) -> None:
        """Let the agent run as long as it has something to do."""
        clock = self._orchestrator.host.clock
        pause_ns = SECOND_NS
        while agent.runnable and not self._orchestrator.closing:
            try:
                async with agent.turn:
                    await self._take_one(agent)
            except (TurnFailed, ProviderError, OSError, StorageError) as failure:
                agent.trouble = str(failure)
                await agent.rest()
                if not (agent.stopped or self._orchestrator.closing):
                    agent.pausing = True
                    try:
                        await clock.sleep(pause_ns)
                    finally:
                        agent.pausing = False
                pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)
            except RuntimeRefused:
                await agent.rest()
                return
            else:
                agent.trouble = ""
                pause_ns = SECOND_NS

    async def _take_one(self, agent: Agent) -> None:
        orchestrator = self._orchestrator
        await self._dead_letters(agent)
        if not agent.runnable:
            return
        assert agent.history.session is not None
        pool = orchestrator.multiplexer.pool(agent.history.session.provider)
        conversation = await pool.hold(agent)
        try:
            turn = await self._turn(agent, pool, conversation)
        finally:
            pool.release(agent)
        if turn is None:
            return
        # Only recovery needs to look back at what was promised.
        agent.history.completed.clear()
        if turn["terminate"]:
            orchestrator.tree.end(agent.agent_id)
        await orchestrator.keep(agent, turn)
        if turn["terminate"]:
            await orchestrator.finish(agent)

    async def _dead_letters(self, agent: Agent) -> None:
        presentations = agent.history.presentations
        dead = [
            message_id
            for message_id in agent.history.pending
            if presentations.get(message_id, 0) >= MOST_PRESENTATIONS
        ]
        if dead:
            reason = f"it was presented {MOST_PRESENTATIONS} times, and no turn came to its end"
            await agent.commit(
                lambda: [
                    (event.MESSAGE_DEAD, {"message_id": message_id, "reason": reason})
                    for message_id in dead
                ]
            )
        await self._orchestrator.return_dead(agent)

    async def _turn(
        self, agent: Agent, pool: Pool, conversation: Conversation
    ) -> JsonObject | None:
        """Return the data of the line that the turn has become; None if there was nothing to do."""
        orchestrator, history = self._orchestrator, agent.history
        shown = list(history.pending.values())
        if not agent.runnable or orchestrator.closing:
            return None
        turn_id = orchestrator.host.ids.uuid_hex()
        while len(prompt := prompt_of(shown, orchestrator.tree.names)) > MOST_PROMPT_BYTES:
            # The others are shown in a later turn; one message alone always fits.
            del shown[len(shown) // 2 :]
        await agent.note([_turn_start(turn_id, prompt, shown)])
        tools = self._tools(orchestrator, agent, [message.message_id for message in shown])
        try:
            response = await self._answer(conversation, prompt, turn_id, tools)
            turn = await self._commit(
                agent, pool.name, _identity_of(conversation), turn_id, response, tools
            )
        except (Exception, CancelledError) as failure:
            if not agent.stopped:
                tools.give_up()
            # Else the line may be durable: what it promises is kept free until the next boot.
            # The conversation may remember a turn that never happened.
            await pool.discard(agent)
            await self._note_failure(agent, turn_id, failure)
            raise
        return turn

    async def _note_failure(self, agent: Agent, turn_id: str, failure: BaseException) -> None:
        """Note that a turn has not happened; whose fault it was is in the line."""
        counts = isinstance(failure, TurnFailed)
        data: JsonObject = {"turn_id": turn_id, "reason": str(failure)}
        if not counts:
            data["uncounted"] = True
        try:
            await agent.note([(event.TURN_FAILED, data)])
        except (OSError, StorageError, RuntimeRefused):
            agent.history.give_up(turn_id, counts=counts)

    async def _answer(
        self, conversation: Conversation, prompt: str, turn_id: str, tools: TurnTools
    ) -> str:
        try:
            async with self._orchestrator.host.clock.timeout(self._timeout_ns):
                parts: list[str] = []
                part: object
                async for part in conversation.send(prompt, turn_id, tools):
                    # Providers are adapters to somebody else's service: what comes is looked at.
                    if not isinstance(part, str):
                        raise TurnFailed(f"the provider's answer is not text: {part!r}")
                    parts.append(part)
        except TimeoutError:
            raise TurnFailed(f"no answer within {self._timeout_ns // SECOND_NS} s") from None
        except (ProviderError, TurnFailed) as error:
            raise TurnFailed(str(error)) from error
        except (Exception, CancelledError) as error:
            if was_cancelled(error):
                raise
            # A mistake of the provider: to the turn it is like any other answer that is none.
            raise TurnFailed(f"the provider failed: {error!r}") from error
        finally:
            tools.finish()
        return "".join(parts)

    async def _commit(
        self, agent: Agent, provider: str, identity: str, turn_id: str, response: str,
        tools: TurnTools,
    ) -> JsonObject:  # fmt: skip
        effects, history = tools.effects, agent.history
        line: JsonObject = {}

        def make() -> Sequence[Event]:
            ends = effects.completion is not None
            returned = [key for key in history.pending if key not in effects.presented]
            by: JsonObject = {"name": provider, "identity": identity}
            permitted = history.open_turns[turn_id].permitted
            line.update(
                effects.line(turn_id, response, by, returned if ends else [], permitted=permitted)
            )
            return [(event.TURN_COMPLETE, line)]

        notes: list[Event] = [
            (event.MESSAGE_DELIVERED, {"message_id": message_id})
            for message_id in effects.presented
        ]
        if effects.completion is not None:
            ended: JsonObject = {
                "agent_id": agent.agent_id, "reason": "completed", "returned": list[Json](),
            }  # fmt: skip
            notes.append((event.AGENT_TERMINATED, ended))
        try:
            await agent.commit_and_note(make, notes)
        except (NotPlainJson, LineTooLarge) as error:
            raise TurnFailed(f"what the provider answered cannot be kept: {error}") from error
        return line


def _identity_of(conversation: Conversation) -> str:
    try:
        return conversation.identity()
    except ProviderError as error:
        raise TurnFailed(str(error)) from error


def _turn_start(turn_id: str, prompt: str, shown: Sequence[Message]) -> Event:
    presented: list[Json] = [message.message_id for message in shown]
    return event.TURN_START, {"turn_id": turn_id, "prompt": prompt, "presented": presented}
