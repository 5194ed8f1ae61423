"""The point at which an execution was interrupted, and the action that is safe there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from system.errors import StorageError
from system.ports import Json, SideEffectClass
from system.recording.records.errors import unreadable_text
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.header import Reason
from system.recording.records.record import ExecutionRecord
from system.recording.stores.store import RecordReader


class Action(StrEnum):
    """The action for an interrupted execution (docs/recording.md, Interrupted executions)."""

    RETRY = "retry"
    CONFIRM = "confirm"
    """A person decides, because a repetition may do harm."""
    NONE = "none"


class CrashPoint(NamedTuple):
    """``agent`` is the agent of the last attempt, where the stage has one."""

    stage: str
    recovery: str
    action: Action
    agent: str | None = None


RUNNING: Final = ("running", "wait")
COMMITTED: Final = ("committed", "complete_record")
"""The log of its session has its turn, which only a caller that reads that log can see."""
BEFORE_START: Final = ("before_start", "safe_to_retry")
AFTER_FAILURE: Final = ("after_failure", "retry_next_agent")
UNKNOWN: Final = ("unknown", "manual_inspection")

_STAGES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        EventType.INTENT_RECEIVED: ("after_receive", "safe_to_retry"),
        EventType.ROUTER_DECISION: ("after_routing", "safe_to_retry"),
        EventType.AGENT_ATTEMPT_START: ("during_agent_execution", "check_agent_idempotency"),
        EventType.AGENT_ATTEMPT_END: ("after_success", "response_may_be_lost"),
        EventType.FALLBACK_TRIGGERED: ("during_fallback", "retry_next_agent"),
        EventType.FINAL_RESPONSE: ("after_final_response", "replay"),
    }
)
_MAY_HAVE_HAD_EFFECTS: Final = frozenset(
    {"during_agent_execution", "after_success", "after_failure", "during_fallback"}
)


_NOT_SHOWN: Final = frozenset((Reason.MANUALLY_INVALIDATED, Reason.RECORDING_FAILURE))
"""Records with these reasons have a status of their own, although they may lack a response."""


def analyze_crash_point(record: ExecutionRecord, *, is_running: bool = False) -> CrashPoint:
    """Return the stage of the last event, the recovery that it allows, and the action.

    ``is_running`` is that of the store of a live runtime; such an execution needs no action.
    """
    last = record.events[-1] if record.events else None
    if is_running:
        return CrashPoint(*RUNNING, Action.NONE, _agent_of(last))
    stage, recovery = _stage_of(last)
    return CrashPoint(stage, recovery, _action(stage, record), _agent_of(last))


def _stage_of(last: ExecutionEvent | None) -> tuple[str, str]:
    if last is None:
        return BEFORE_START
    if last.type == EventType.AGENT_ATTEMPT_END and _member(last, "status") != "success":
        return AFTER_FAILURE
    return _STAGES.get(last.type, UNKNOWN)


def _action(stage: str, record: ExecutionRecord) -> Action:
    if stage == "after_final_response":
        return Action.NONE
    is_harmless = record.side_effects is not SideEffectClass.IRREVERSIBLE
    if stage == "unknown" or (stage in _MAY_HAVE_HAD_EFFECTS and not is_harmless):
        return Action.CONFIRM
    return Action.RETRY


def _agent_of(last: ExecutionEvent | None) -> str | None:
    agent = None if last is None else _member(last, "agent")
    return agent if isinstance(agent, str) else None


def _member(event: ExecutionEvent, name: str) -> Json:
    payload = event.payload
    return payload.get(name) if isinstance(payload, dict) else None


def _is_incomplete(record: ExecutionRecord) -> bool:
    return record.frozen_response is None and record.header.replayable_reason not in _NOT_SHOWN


class IncompleteExecution(NamedTuple):
    """An execution that has started and not ended.

    ``retried_by`` is the execution that has repeated it, or None.
    """

    execution_id: str
    point: CrashPoint
    retried_by: str | None = None


class IncompleteReport(NamedTuple):
    """``executions`` are sorted by id; ``unreadable`` has the error of each id that is not read."""

    executions: tuple[IncompleteExecution, ...]
    unreadable: tuple[tuple[str, str], ...]


def detect_incomplete(store: RecordReader) -> IncompleteReport:
    """Return the executions of a store whose status is ``incomplete``; reads only the store.

    Those that are running in this process are not interrupted.
    """
    found: list[IncompleteExecution] = []
    unreadable: list[tuple[str, str]] = []
    retried_by: dict[str, str] = {}
    for execution_id in store.list_all():
        try:
            record = store.load(execution_id)
        except (StorageError, OSError) as error:
            unreadable.append((execution_id, unreadable_text(execution_id, error)))
            continue
        decision = record.router_decision
        retried = decision.get("retryOf") if isinstance(decision, dict) else None
        if isinstance(retried, str):
            retried_by[retried] = execution_id
        if not store.is_running(execution_id) and _is_incomplete(record):
            found.append(IncompleteExecution(execution_id, analyze_crash_point(record)))
    executions = [each._replace(retried_by=retried_by.get(each.execution_id)) for each in found]
    return IncompleteReport(tuple(executions), tuple(unreadable))
