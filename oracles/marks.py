"""Sometimes-marks: states that a campaign must reach at least once to mean anything.

A machine reaches a mark when it sees the state; a campaign adds up what its runs reached.
A mark that is never reached is reported: the harness did not look where it should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum


class Mark(StrEnum):
    """Each says what was seen, not what was intended."""

    KILLED = "a process was killed"
    POWER_CUT_LOST = "a power cut lost something"
    POWER_CUT_KEPT = "a power cut lost nothing although something was pending"
    TORN = "one write survived in part"
    NESTED_CRASH = "a crash inside recovery"
    DEEP_CRASH = "a crash inside the recovery from a crash inside recovery"
    IN_FLIGHT_KEPT = "an operation in flight had happened"
    IN_FLIGHT_LOST = "an operation in flight had not happened"
    TORN_TAIL_TRUNCATED = "a torn tail was truncated"
    PENDING_REPLAYED = "a pending entry was replayed"
    PENDING_REJECTED = "a torn or stale pending entry was rejected"
    QUARANTINED = "something damaged was put aside and reported"
    STALE_TEMPORARY_SWEPT = "a stale temporary file was swept"
    ACTIVE_SUSPENDED = "an active session was suspended by recovery"
    FAULT_FIRED = "an injected fault reached the system"
    STOPPED_BY_SYNC = "a failed fsync stopped a log"
    RECOVERY_FAILED = "a recovery met a fault and gave up"

    NESTED_CRASH_WITH_AGENTS = "a crash inside the recovery of agents"
    REDELIVERED = "a message was presented again"
    DEAD_LETTER = "a message was presented too often and put aside"
    BOUNCED = "a message came back because its recipient had ended"
    SPAWN_REDONE = "recovery made a child that a turn had promised"
    OUTBOX_REDONE = "recovery delivered a message that a turn had promised"
    CONTROL_REDONE = "recovery passed on a gate, an ungate or a permit"
    NOTICE_REDONE = "recovery told a subscriber of an end"
    TERMINATION_FINISHED = "recovery finished a termination"
    ORPHAN_REMOVED = "recovery removed an orphan"
    LOST_TURN_TOLD = "an agent was told of a lost turn"
    PERMITTED_TURN = "a gated agent was permitted a turn"
    REMINDER_AFTER_CRASH = "a reminder came after a crash"
    STOPPED_SESSION_BACK = "a session that a barrier had stopped came back"
    PROVIDER_FAULT = "a fault of a provider struck"
    CALL_GIVEN_UP = "the operator gave up a call, which went on"


class Marks:
    """The marks reached so far, and how often."""

    __slots__ = ("_reached",)

    def __init__(self) -> None:
        self._reached: Counter[Mark] = Counter()

    def reach(self, mark: Mark) -> None:
        """Note that this state was seen."""
        self._reached[mark] += 1

    def add(self, other: Marks) -> None:
        """Add what another run reached."""
        self._reached.update(other._reached)

    @property
    def reached(self) -> dict[Mark, int]:
        """How often each mark was reached, in the order of ``Mark``."""
        return {mark: self._reached[mark] for mark in Mark if self._reached[mark]}

    def never(self, expected: Iterable[Mark]) -> tuple[Mark, ...]:
        """Return those of ``expected`` that were never reached."""
        return tuple(mark for mark in expected if not self._reached[mark])
