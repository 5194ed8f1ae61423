"""Executes a recorded request again (a replay executes nothing)."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from system.foreign import passes, reason_of
from system.ports import JsonObject, SideEffectClass
from system.recording.recorder import ExecutionRecorder
from system.recording.records.errors import RecorderError
from system.recording.records.event import EventType
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.record import ExecutionRecord

Handler: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]


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
    An exception of the handler, or ``NotPlainJson`` for an answer that is no JSON object, is
    recorded as an error and raised.
    """
    side_effects = record.side_effects
    if side_effects is SideEffectClass.IRREVERSIBLE and not confirm:
        raise RecorderError(
            f"Cannot execute {record.execution_id} again: it may have had irreversible effects;"
            " pass confirm=True"
        )
    recorder.start(record.envelope, side_effects, record.execution_id)
    agent = "handler"
    recorder.record_event(EventType.INTENT_RECEIVED, {"reExecutionOf": record.execution_id})
    recorder.record_event(EventType.ROUTER_DECISION, {"agent": agent, "retryOf": None})
    recorder.record_event(EventType.AGENT_ATTEMPT_START, {"agent": agent, "attempt": 1})
    await recorder.barrier()
    try:
        answer = await handler(record.envelope)
        response = FrozenJson.of_object(answer, "answer of the handler")
    except (Exception, CancelledError) as error:
        code = "CANCELLED" if passes(error) else "AGENT_ERROR"
        failure: JsonObject = {"code": code, "message": reason_of(error)}
        _end_attempt(recorder, {"status": "error", "error": failure})
        await recorder.finalize(
            {"status": "error", "payload": None, "metadata": {}, "error": failure}
        )
        raise
    _end_attempt(recorder, {"status": "success"})
    return await recorder.finalize(response)


def _end_attempt(recorder: ExecutionRecorder, outcome: JsonObject) -> None:
    payload = {"agent": "handler", "attempt": 1, **outcome}
    recorder.record_event(EventType.AGENT_ATTEMPT_END, payload)
