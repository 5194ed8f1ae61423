"""Turns: present the pending messages, call the provider, commit one line, dispatch it.

Turns of one agent follow one another, those of different agents overlap. Until the line is
durable nothing of the turn has happened, so a turn that fails before that is repeated.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from system.agents import event
from system.agents.agent import Agent
from system.agents.dispatcher import Dispatcher
from system.agents.message import Message, Prompt, prompt_of
from system.agents.multiplexer import Pool
from system.agents.orchestrator import LONGEST_PAUSE_NS, SECOND_NS
from system.agents.tools import TurnTools
from system.agents.turn_complete import TurnComplete
from system.agents.turn_failed import FailureCode, TurnFailed
from system.agents.turn_payloads import TurnPayloads
from system.agents.turn_recorder import RecordingOptions, TurnRecorder
from system.agents.turn_trigger import (
    TurnTrigger,
    claimed_trigger,
    give_up_trigger,
    return_trigger,
)
from system.errors import LineTooLarge, NotPlainJson, RuntimeRefused, StorageError
from system.foreign import passes, reason_of, shown
from system.ports import Conversation, JsonObject, ProviderError
from system.storage.line import LARGEST_BYTES

MOST_PROMPT_BYTES: Final = LARGEST_BYTES // 4
"""The most bytes of a prompt; it is a text in a line, in which escapes may double its size."""

MOST_PRESENTATIONS: Final = 5
"""The number of failed turns after which a message is dead."""


class Turns:
    """Takes the turns of agents; ``turn_timeout_ns`` bounds one answer of a provider."""

    def __init__(
        self, dispatcher: Dispatcher, turn_timeout_ns: int, options: RecordingOptions
    ) -> None:
        self._orchestrator = dispatcher.orchestrator
        self._dispatcher = dispatcher
        self._timeout_ns = turn_timeout_ns
        self._recording_options = options

    async def take(self, agent: Agent) -> None:
        """Take turns as long as the agent is runnable; pause after each one that fails."""
        orchestrator, work = self._orchestrator, agent.work
        pause_ns = SECOND_NS
        while not orchestrator.closing:
            try:
                async with work.turn:
                    if not (agent.runnable or orchestrator.has_due_trigger(agent)):
                        return
                    await self._take_one(agent, pause_ns)
                    await self._dispatcher.snapshots.take_if_due(agent)
                await self._checkpoint_if_due()
            except (TurnFailed, ProviderError, OSError, StorageError) as failure:
                work.trouble = reason_of(failure)
                await agent.log.park()
                await self._checkpoint_if_due()
                if not (agent.log.stopped or orchestrator.closing):
                    await work.turns.pause(orchestrator.host.clock, pause_ns)
                pause_ns = min(2 * pause_ns, LONGEST_PAUSE_NS)
            except RuntimeRefused as refused:
                work.trouble = reason_of(refused)
                await agent.log.park()
                return
            else:
                work.trouble = ""
                pause_ns = SECOND_NS

    async def _checkpoint_if_due(self) -> None:
        """Write the waiting records if there are many; the next boot writes refused ones."""
        recording = self._orchestrator.recording
        if recording is not None and recording.is_checkpoint_due:
            with suppress(OSError, StorageError):
                await recording.checkpoint()

    async def _take_one(self, agent: Agent, pause_ns: int) -> None:
        dispatcher = self._dispatcher
        if await self._return_dead_letters(agent) and not agent.runnable:
            # A due trigger is claimed in the next round.
            return
        turns_before = agent.history.turn_count
        try:
            turn = await self._turn_in_slot(agent, pause_ns)
            if turn is None:
                return
            if turn.terminate:
                self._orchestrator.tree.end(agent.agent_id)
            await dispatcher.dispatch_turn(agent, turn)
            if turn.terminate:
                await dispatcher.finish(agent)
        except (Exception, CancelledError):
            if agent.history.turn_count > turns_before:
                # A later turn of this lifetime would move the watermark past this outbox.
                agent.log.stop("a turn was interrupted; the next boot dispatches its outbox")
            raise

    async def _turn_in_slot(self, agent: Agent, pause_ns: int) -> TurnComplete | None:
        """Take a turn with at most one trigger, which is claimed when the slot is held."""
        orchestrator, trigger = self._orchestrator, None
        durable = orchestrator.durable
        pool, conversation = await orchestrator.multiplexer.hold(agent)
        try:
            try:
                if durable.stores is not None and agent.may_run and not orchestrator.closing:
                    trigger = await claimed_trigger(durable, agent, orchestrator.now())
                turn = await self._turn(agent, pool, conversation, pause_ns, trigger)
            finally:
                pool.release(agent)
        except Exception as failure:
            # After a failed barrier the line may be durable: the next boot reads the log first.
            if trigger is not None and not agent.log.stopped:
                await give_up_trigger(durable, trigger, failure)
            raise
        if turn is None and trigger is not None:
            await return_trigger(durable, trigger)
        return turn

    async def _return_dead_letters(self, agent: Agent) -> bool:
        """Make messages that were presented too often dead letters; return whether there were any.

        Their senders get an error.
        """
        history = agent.history
        dead = [
            message_id
            for message_id in history.pending
            if history.presentations.get(message_id, 0) >= MOST_PRESENTATIONS
        ]
        if dead:
            reason = f"it was presented {MOST_PRESENTATIONS} times, and no turn came to its end"
            await agent.log.commit(
                lambda: [
                    (event.MESSAGE_DEAD, {"message_id": message_id, "reason": reason})
                    for message_id in dead
                ]
            )
        if history.unreachable:
            self._dispatcher.enqueue_errors(agent)
            await self._dispatcher.dispatch()
        return bool(dead)

    async def _turn(
        self, agent: Agent, pool: Pool, conversation: Conversation, pause_ns: int,
        trigger: TurnTrigger | None,
    ) -> TurnComplete | None:  # fmt: skip
        """Return the committed turn; None if the agent is no longer runnable.

        A turn that fails runs again after ``pause_ns``.
        """
        orchestrator = self._orchestrator
        shown = list(agent.history.pending.values())
        if not (shown or trigger) or not agent.may_run or orchestrator.closing:
            return None
        turn_id = orchestrator.host.ids.uuid_hex()
        prompt, items = _fitting_prompt(trigger, shown, orchestrator.tree.names)
        presented = [message.message_id for message in shown]
        recorder = self._recorder(agent, turn_id, items)
        try:
            if recorder:
                await recorder.start(orchestrator.epoch, agent.history.retry_of)
            members = recorder.start_members if recorder else {}
            await agent.log.begin_turn(
                turn_id, prompt, presented, {**members, **_start_members(trigger)}
            )
        except (OSError, StorageError, RuntimeRefused) as refusal:
            if recorder:
                await recorder.fail(refusal, presented, pause_ns)
            raise
        tools = TurnTools(orchestrator, agent, turn_id, presented)
        tools.draft.trigger_id = trigger.trigger_id if trigger else None
        try:
            if recorder:
                await recorder.make_durable()
            response = await self._answer(conversation, prompt, turn_id, tools)
            identity = _identity_of(conversation)
            if recorder:
                await recorder.end_attempt(tools.draft.presented)
            turn = await self._commit(agent, pool.name, identity, turn_id, response, tools)
        except (Exception, CancelledError) as failure:
            # A turn whose line is written has not failed; it was cancelled after that.
            is_open = turn_id in agent.history.open_turns
            # After a failed barrier the line may be durable: its names stay reserved, and
            # recovery decides whether the execution has ended.
            if is_open and not agent.log.stopped:
                tools.give_up()
                if recorder:
                    await recorder.fail(failure, tools.draft.presented, pause_ns)
            # The conversation may contain a turn that was not committed.
            await pool.discard(agent)
            if is_open:
                counts = isinstance(failure, TurnFailed)
                await agent.log.fail_turn(turn_id, reason_of(failure), counts=counts)
            raise
        if recorder:
            await recorder.commit(turn)
        return turn

    def _recorder(
        self, agent: Agent, turn_id: str, shown: Sequence[JsonObject]
    ) -> TurnRecorder | None:
        """Return the recorder of a turn, or None if executions are not recorded."""
        orchestrator = self._orchestrator
        if orchestrator.recording is None:
            return None
        session = agent.history.session
        assert session is not None, "an agent without a session is stopped"
        payloads = TurnPayloads(
            turn_id, agent.agent_id, agent.session_id, agent.name(), session.provider,
            session.model, shown,
        )  # fmt: skip
        return TurnRecorder(
            orchestrator.host, orchestrator.recording, self._recording_options, payloads
        )

    async def _answer(
        self, conversation: Conversation, prompt: str, turn_id: str, tools: TurnTools
    ) -> str:
        try:
            async with self._orchestrator.host.clock.timeout(self._timeout_ns):
                parts: list[str] = []
                part: object
                async for part in conversation.send(prompt, turn_id, tools):
                    # Providers are adapters to foreign services: their types are checked.
                    if not isinstance(part, str):
                        raise TurnFailed(f"the provider's answer is not text: {shown(part)}")
                    parts.append(part)
        except TimeoutError:
            raise TurnFailed(
                f"no answer within {self._timeout_ns // SECOND_NS} s", FailureCode.TIMEOUT
            ) from None
        except (ProviderError, TurnFailed) as error:
            raise TurnFailed(reason_of(error)) from error
        except BaseException as error:
            if passes(error):
                raise
            # A bug of the provider has the effect of an unusable answer.
            raise TurnFailed(f"the provider failed: {shown(error)}") from error
        finally:
            tools.is_over = True
        return "".join(parts)

    async def _commit(
        self, agent: Agent, provider: str, identity: str, turn_id: str, response: str,
        tools: TurnTools,
    ) -> TurnComplete:  # fmt: skip
        try:
            return await agent.log.commit_turn(tools.draft, turn_id, response, provider, identity)
        except (NotPlainJson, LineTooLarge) as error:
            reason = f"the provider's answer cannot be kept: {error}"
            raise TurnFailed(reason, FailureCode.NOT_KEPT) from error


def _identity_of(conversation: Conversation) -> str:
    try:
        return conversation.identity()
    except ProviderError as error:
        raise TurnFailed(reason_of(error)) from error


def _start_members(trigger: TurnTrigger | None) -> JsonObject:
    """Return the members of ``turn.start`` about the trigger."""
    return {} if trigger is None else {"trigger_id": trigger.trigger_id}


def _fitting_prompt(
    trigger: TurnTrigger | None, shown: list[Message], names: Mapping[str, str]
) -> Prompt:
    """Return the prompt of a turn; messages that do not fit are removed from ``shown``.

    Removed messages are shown in a later turn. A single message always fits, and so does a
    trigger.
    """
    first = [] if trigger is None else [trigger.message]
    while len((prompt := prompt_of([*first, *shown], names)).text) > MOST_PROMPT_BYTES:
        del shown[len(shown) // 2 :]
    return prompt
