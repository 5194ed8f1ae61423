"""The record of one attempt at a turn (``docs/recording.md``).

The turn's line is the commit point. Before the provider is called, everything recorded so far is
durable. After that call, no error of the recording stops a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from system.agents.turn_complete import TurnComplete
from system.agents.turn_failed import code_of
from system.agents.turn_payloads import SIDE_EFFECTS, TurnPayloads, error_of
from system.errors import StorageError
from system.foreign import reason_of
from system.option_check import check_member
from system.ports import Host, JsonObject
from system.recording.recorder import Recorder
from system.recording.records.event import EventType
from system.recording.records.execution_id import checked_rate
from system.recording.records.frozen_json import FrozenJson
from system.recording.wal.recording import WalRecording


class Durability(Enum):
    """The barriers of a recording, besides that of a turn's line."""

    ATTEMPTS = "attempts"
    """One before each call of a provider."""
    EVENTS = "events"
    """One after each event."""


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """``sample_rate`` is the part of all executions that is recorded, from 0.0 to 1.0."""

    durability: Durability = Durability.ATTEMPTS
    sample_rate: float = 1.0

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for another durability, or a rate that is no part of all."""
        check_member(Durability, durability=self.durability)
        checked_rate(self.sample_rate)


class TurnRecorder:
    """Records one turn.

    ``start_members`` are members of its ``turn.start``: the id and the start entry of the
    execution, or ``sampled_out``.
    """

    def __init__(
        self,
        host: Host,
        recording: WalRecording,
        options: RecordingOptions,
        payloads: TurnPayloads,
    ) -> None:
        self.start_members: JsonObject = {}
        self._payloads = payloads
        self._is_durable_at_once = options.durability is Durability.EVENTS
        self._recorder = Recorder(
            host.clock, host.ids, recording, options.sample_rate, at_once=False
        )
        self._is_open = False

    async def start(self, epoch: int, retry_of: str | None) -> None:
        """Record the request, its route and the attempt; raises ``StorageError`` or ``OSError``."""
        recorder, payloads = self._recorder, self._payloads
        execution_id = recorder.start(
            payloads.envelope(epoch), SIDE_EFFECTS, events=payloads.beginning(retry_of)
        )
        if recorder.is_sampled_out:
            self.start_members = {"sampled_out": True}
            return
        self.start_members = {
            "execution_id": execution_id, "execution_entry": recorder.start_entry,
        }  # fmt: skip
        self._is_open = True
        if self._is_durable_at_once:
            await recorder.barrier()

    async def make_durable(self) -> None:
        """Make everything so far durable; raises ``StorageError`` or ``OSError``."""
        if self._is_open and not self._is_durable_at_once:
            await self._recorder.barrier()

    async def end_attempt(self, presented: Sequence[str]) -> None:
        """Record that the provider has answered."""
        if self._is_open:
            await self._record(EventType.AGENT_ATTEMPT_END, self._payloads.attempt_end(presented))

    async def commit(self, turn: TurnComplete) -> None:
        """Record the response of a turn whose line is durable, without a barrier."""
        if self._is_open:
            await self._complete(self._payloads.response(turn))

    async def fail(self, failure: BaseException, presented: Sequence[str], after_ns: int) -> None:
        """Record that the turn has failed, and runs again after ``after_ns``."""
        if not self._is_open:
            return
        reason = reason_of(failure)
        error = error_of(code_of(failure), reason)
        is_kept = True
        if self._recorder.last_event == EventType.AGENT_ATTEMPT_START:
            attempt_end = self._payloads.attempt_end(presented, error)
            is_kept = await self._record(EventType.AGENT_ATTEMPT_END, attempt_end)
        if is_kept and self._recorder.last_event == EventType.AGENT_ATTEMPT_END:
            fallback = self._payloads.fallback(reason, after_ns)
            await self._record(EventType.FALLBACK_TRIGGERED, fallback)
        await self._complete(self._payloads.failure(error))

    async def _record(self, event_type: EventType, payload: FrozenJson) -> bool:
        """Record an event, or lose it; return whether the disk has taken it."""
        try:
            self._recorder.record_event(event_type, payload)
            if self._is_durable_at_once:
                await self._recorder.barrier()
        except (StorageError, OSError):
            return False
        return True

    async def _complete(self, response: FrozenJson) -> None:
        self._is_open = False
        self._recorder.append_response(response)
        if self._is_durable_at_once:
            with suppress(StorageError, OSError):
                await self._recorder.barrier()
