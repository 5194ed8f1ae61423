"""Executes a recorded request again (a replay executes nothing)."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from system.errors import StorageError
from system.foreign import passes, reason_of
from system.ports import JsonObject, SideEffectClass
from system.recording.recorder import ExecutionRecorder
from system.recording.records.errors import RecorderError
from system.recording.records.event import EventType
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.record import ExecutionRecord

Handler: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]

_AGENT: Final = "handler"


async def re_execute(
    record: ExecutionRecord,
    handler: Handler,
    recorder: ExecutionRecorder,
    *,
    confirm: bool = False,
) -> ExecutionRecord | None:
    """Call ``handler`` with the recorded envelope, and record that as a new execution.

    Returns the new record, which names the old one in ``reExecutionOf``; None if it was sampled
    out. Raises ``RecorderError`` for an execution with irreversible effects without ``confirm``.
    An exception of the handler, also one that is no ``Exception``, or ``NotPlainJson`` for an
    answer that is no JSON object, is recorded as an error and raised.

    Raises ``StorageError`` or ``OSError`` if the disk refuses the request; then the handler is not
    called. An answer is returned also if the disk refuses it: the next checkpoint writes the
    record.
    """
    side_effects = record.side_effects
    if side_effects is SideEffectClass.IRREVERSIBLE and not confirm:
        raise RecorderError(
            f"Cannot execute {record.execution_id} again: it may have had irreversible effects;"
            " pass confirm=True"
        )
    events = (
        (EventType.INTENT_RECEIVED, {"reExecutionOf": record.execution_id}),
        (EventType.ROUTER_DECISION, {"agent": _AGENT, "retryOf": None}),
        (EventType.AGENT_ATTEMPT_START, {"agent": _AGENT, "attempt": 1}),
    )
    recorder.start(record.envelope, side_effects, record.execution_id, events)
    code = "STORAGE"
    try:
        await recorder.barrier()
        code = "AGENT_ERROR"
        answer = await handler(record.envelope)
        response = FrozenJson.of_object(answer, "answer of the handler")
    except BaseException as error:
        is_cancelled = passes(error) and isinstance(error, CancelledError)
        if passes(error) and not is_cancelled:
            raise
        code = "CANCELLED" if is_cancelled else code
        failure: JsonObject = {"code": code, "message": reason_of(error)}
        response = FrozenJson.of(
            {"status": "error", "payload": None, "metadata": {}, "error": failure}
        )
        with suppress(StorageError, OSError):
            await _end(recorder, {"status": "error", "error": failure}, response)
        raise
    return await _end(recorder, {"status": "success"}, response)


async def _end(
    recorder: ExecutionRecorder, outcome: JsonObject, response: FrozenJson
) -> ExecutionRecord | None:
    """Record the end of the attempt and the response, both as far as the disk permits."""
    with suppress(StorageError, OSError):
        payload = {"agent": _AGENT, "attempt": 1, **outcome}
        recorder.record_event(EventType.AGENT_ATTEMPT_END, payload)
    record = recorder.complete(response)
    with suppress(StorageError, OSError):
        await recorder.barrier()
    return record
