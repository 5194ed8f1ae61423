"""All mutants by their identity, in the order of the specification's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from crash_tests.mutants import agents_conversations as conversations
from crash_tests.mutants import agents_promises as promises
from crash_tests.mutants import agents_recovery as recovery
from crash_tests.mutants import agents_turns as turns
from crash_tests.mutants import event_log as logs
from crash_tests.mutants import session_store as stores
from crash_tests.mutants.mutant import (
    LogMutant,
    Mutant,
    RecoverRuntime,
    RuntimeMutant,
    StoreMutant,
)
from sim.errors import HarnessError

_FRAMED: Final = "event-log-framed"
_PENDING: Final = "event-log-pending"
_STORE: Final = "session-store"
_RUNTIME: Final = "runtime"


def _storage() -> Iterable[Mutant]:
    yield LogMutant(
        "R1", "a torn pending entry is appended unvalidated",
        _PENDING, logs.torn_pending_is_appended,
    )  # fmt: skip
    yield LogMutant(
        "R2", "a torn tail stays when there is no pending entry",
        _PENDING, logs.torn_tail_stays_without_pending,
    )  # fmt: skip
    yield LogMutant(
        "R3", "a stale pending entry is appended again",
        _PENDING, logs.stale_pending_is_appended,
    )  # fmt: skip
    yield StoreMutant(
        "R8", "one unreadable session record stops the recovery of all",
        _STORE, stores.one_bad_record_stops_all,
    )  # fmt: skip
    yield LogMutant(
        "R9", "a region of NULs ends the recovery",
        _FRAMED, logs.encoding_of_lines_is_guessed,
    )  # fmt: skip
    yield StoreMutant(
        "R18", "the entry of a new session's directory is never made durable",
        _STORE, stores.new_directory_has_no_barrier,
    )  # fmt: skip
    yield LogMutant(
        "R19", "a partial line stays in a running log",
        _FRAMED, logs.partial_line_stays,
    )  # fmt: skip
    yield LogMutant(
        "R19-fsync", "a failed fsync is forgotten and the log goes on",
        _FRAMED, logs.failed_barrier_is_forgotten,
    )  # fmt: skip


_OF_THE_RUNTIME: Final[Mapping[str, tuple[str, RecoverRuntime]]] = {
    "R4": (
        "a turn consumes messages that it never showed",
        turns.inbox_is_drained,
    ),
    "R5": (
        "a message to a child of the same turn is not logged",
        promises.message_to_new_child_is_lost,
    ),
    "R6": (
        "the runtime's own messages lose their time and reference",
        promises.system_messages_are_bare,
    ),
    "R6-permit": (
        "a permit is logged and never restored",
        recovery.permits_are_not_restored,
    ),
    "R7": (
        "a failed turn is recorded as a completed one",
        turns.failed_turn_is_complete,
    ),
    "R10": (
        "messages to USER are volatile",
        promises.messages_to_user_are_volatile,
    ),
    "R12": (
        "a response is delivered before its turn is durable",
        turns.response_goes_before_its_turn,
    ),
    "R13": (
        "a child's first message is volatile",
        promises.bootstrap_is_volatile,
    ),
    "R15": (
        "a stale provider blob takes the conversation back",
        conversations.stale_blob_is_trusted,
    ),
    "R16": (
        "children stand in no line of their parent",
        turns.children_stand_in_no_line,
    ),
    "R17": (
        "a conversation's name is saved only when it is suspended",
        conversations.identity_is_saved_late,
    ),
    "R20": (
        "a slot is given up before its record is saved",
        conversations.slot_goes_before_its_record,
    ),
    "R21-reminders": (
        "reminders are volatile",
        recovery.reminders_are_not_restored,
    ),
    "R21-subscriptions": (
        "subscriptions are volatile",
        recovery.subscriptions_are_not_restored,
    ),
    "R21-ended": (
        "the record of an agent that has ended stays as it was",
        promises.ended_sessions_stay_suspended,
    ),
    "R21-orphans": (
        "what is left of a creation is never collected",
        recovery.orphans_are_never_collected,
    ),
    "R22": (
        "one agent that the tree refuses ends the recovery",
        recovery.one_bad_agent_stops_all,
    ),
}


def _runtime() -> Iterable[Mutant]:
    for identity, (title, recover) in _OF_THE_RUNTIME.items():
        yield RuntimeMutant(identity, title, _RUNTIME, recover)


def _row(mutant: Mutant) -> int:
    return int(mutant.identity.partition("-")[0][1:])


MUTANTS: Final[Mapping[str, Mutant]] = MappingProxyType(
    {mutant.identity: mutant for mutant in sorted([*_storage(), *_runtime()], key=_row)}
)


def mutant_named(identity: str) -> Mutant:
    """Return the mutant of this identity; ``HarnessError`` names the known ones."""
    try:
        return MUTANTS[identity]
    except KeyError:
        known = ", ".join(MUTANTS)
        raise HarnessError(f"unknown mutant {identity!r}; known are {known}") from None
