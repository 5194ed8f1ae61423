"""The state of one session, computed from the lines of its log, and the laws inside one log.

The computation stops at the first line that breaks a law. The violation is stored, not
raised: a session that is reported as damaged is excused from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from itertools import islice
from typing import Any, Final

from oracles.runtime.committed_effects import add_effects
from oracles.runtime.gate_state import GateState
from oracles.runtime.log_reader import LogLine, ParsedLog
from oracles.runtime.log_records import (
    KINDS,
    USER,
    AgentRecord,
    ControlRecord,
    MessageRecord,
    ReminderRecord,
    SpawnRecord,
    StartRecord,
    SubscriptionRecord,
    TurnRecord,
    agent_of,
    message_of,
    turn_of,
)
from oracles.runtime.snapshot_laws import check_snapshot, given_up_turns
from oracles.runtime.violations import (
    DuplicateCompletion,
    DuplicateDelivery,
    EndlessPresentation,
    MisroutedMessage,
    OverlappingTurns,
    PrematureDeadLetter,
    PresentedMismatch,
    SkippedMessage,
    UnpresentedDelivery,
    UnreturnedMessages,
    WriteAfterEnd,
)
from oracles.violation import (
    CorruptLog,
    Duplicated,
    InvalidState,
    Phantom,
    Resurrected,
    Violation,
)

MOST_PRESENTATIONS: Final = 5

_GROWING: Final = (dict, set, GateState)


class SessionState:
    """The state of one session, or of USER; every collection is in the order of the lines.

    ``session_id`` is the name of the log's directory, ``user`` for USER. ``agent_id`` is empty
    before ``agent.created``, ``ended`` is the reason of the end or empty, and ``finished`` says
    that the log contains ``agent.terminated``.

    ``sent`` maps the messages of all outboxes to the order in which they were sent, as pairs
    of turn and place; ``bootstraps`` maps the bootstrap messages of children to their spawns.
    ``handled`` are the triggers that turns have settled, with the numbers of their lines.
    ``dispatched`` is the watermark: the number of the line up to which, according to a later
    line, all outboxes are dispatched. ``segment_seq`` is the first line of the newest segment.
    """

    def __init__(self, path: str, log: ParsedLog) -> None:
        self.path = path
        self.session_id = path.split("/")[-2]
        self.log = log
        self.is_user = self.session_id == "user"
        self.created: Mapping[str, Any] = {}
        self.agent: AgentRecord | None = None
        self.agent_id = ""
        self.enqueued: dict[str, MessageRecord] = {}
        self.positions: dict[str, int] = {}
        self.pending: dict[str, None] = {}
        self.presentations: Counter[str] = Counter()
        self.starts: dict[str, StartRecord] = {}
        self.open_starts: dict[str, StartRecord] = {}
        self.turns: dict[str, TurnRecord] = {}
        self.dispatched = 0
        self.segment_seq = 1
        self.forgotten_children: set[str] = set()
        self.failed: set[str] = set()
        self.delivered: dict[str, str] = {}
        self.dead: dict[str, str] = {}
        self.returned: tuple[str, ...] = ()
        self.ended = ""
        self.finished = False
        self.gate = GateState()
        self.applied_controls: dict[str, tuple[int, str, str]] = {}
        self.metadata: dict[str, Any] = {}
        self.sent: dict[str, tuple[tuple[int, int], MessageRecord]] = {}
        self.bootstraps: dict[str, SpawnRecord] = {}
        self.controls: dict[str, ControlRecord] = {}
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.unsubscribed: dict[str, int] = {}
        self.reminders: dict[str, ReminderRecord] = {}
        self.cancelled: dict[str, int] = {}
        self.handled: dict[str, int] = {}
        self.recovery_notices: dict[str, MessageRecord] = {}
        self.violation: Violation | None = None
        self.apply(log.lines)

    def extended(self, log: ParsedLog) -> SessionState:
        """Return the state of a log that begins with this state's log; this one is unchanged."""
        if self.violation is not None:
            return self
        grown = copy(self)
        vars(grown).update(
            (name, value.copy())
            for name, value in vars(self).items()
            if isinstance(value, _GROWING)
        )
        grown.log = log
        grown.apply(log.lines[len(self.log.lines) :])
        return grown

    def apply(self, lines: Iterable[LogLine]) -> None:
        """Apply the next lines, up to the first that breaks a law; ignore unknown events."""
        for line in lines:
            handler = _HANDLERS.get(line.event)
            if handler is None:
                continue
            try:
                handler(self, line)
            except Violation as violation:
                violation.evidence.update(path=self.path, line=line.raw)
                self.violation = violation
                return
            except (KeyError, TypeError) as error:
                self.violation = CorruptLog(
                    f"a {line.event} line lacks a member or has one of a wrong type",
                    error=repr(error), path=self.path, line=line.raw,
                )  # fmt: skip
                return

    # --- beginning and end

    def session_created(self, line: LogLine) -> None:
        if line.seq != 1:
            raise InvalidState("session.created is not the first line of its log")
        self.created = line.data

    def agent_created(self, line: LogLine) -> None:
        if line.seq != 2 or not self.created:
            raise InvalidState("agent.created does not follow session.created")
        self.agent = agent_of(line.data)
        self.agent_id = self.agent.agent_id

    def terminated(self, line: LogLine) -> None:
        reason, agent_id = line.data["reason"], line.data["agent_id"]
        if self.finished or (self.ended and reason == "operator"):
            raise DuplicateCompletion(
                "an agent that has ended was terminated again", first=self.ended, second=reason
            )
        if reason not in ("completed", "operator") or agent_id != self.agent_id:
            raise InvalidState(
                "agent.terminated names another agent, or an unknown reason",
                expected=self.agent_id, actual=agent_id, reason=reason,
            )  # fmt: skip
        if reason == "completed" and not self.ended:
            raise InvalidState("an agent is terminated as completed, but none of its turns did so")
        if not self.ended:
            self._end(reason, tuple(line.data["returned"]))
        self.finished = True

    def _end(self, reason: str, returned: tuple[str, ...]) -> None:
        if returned != tuple(self.pending):
            raise UnreturnedMessages(
                "the messages that an ending agent returned are not its pending ones",
                pending=list(self.pending), returned=list(returned),
            )  # fmt: skip
        self.ended, self.returned = reason, returned
        self.pending.clear()

    def _require_alive(self, event: str) -> None:
        if self.ended:
            raise WriteAfterEnd(f"{event} after the agent has ended", ended=self.ended)

    def log_snapshot(self, line: LogLine) -> None:
        self._require_alive("a snapshot was taken")
        if line.durable != line.seq - 1:
            raise InvalidState("a segment began before the one before it was durable")
        self.forgotten_children = check_snapshot(self, line.data)
        for start in given_up_turns(self, line.data):
            del self.open_starts[start.turn_id]
            self.failed.add(start.turn_id)
        for key in self.pending:
            self.presentations[key] = line.data["presentations"].get(key, 0)
        self.segment_seq = line.seq

    # --- messages

    def message_enqueued(self, line: LogLine) -> None:
        self._require_alive("a message was enqueued")
        message = message_of(line.data)
        key, owner = message.message_id, USER if self.is_user else self.agent_id
        if key in self.enqueued:
            raise Duplicated("a message was enqueued twice", message=message)
        if message.recipient != owner:
            raise MisroutedMessage(
                "a message is in a log other than its recipient's",
                recipient=message.recipient, owner=owner,
            )  # fmt: skip
        if message.kind not in KINDS:
            raise Phantom("a message has an unknown kind", kind=message.kind)
        self.enqueued[key] = message
        self.positions[key] = line.seq
        self.pending[key] = None
        if message.kind == "system" and not self.is_user:
            self.recovery_notices[key] = message

    def message_delivered(self, line: LogLine) -> None:
        key = line.data["message_id"]
        if key in self.delivered:
            return
        if key not in self.enqueued:
            raise Phantom("a message is delivered that was never enqueued", message_id=key)
        if not self.is_user:
            raise UnpresentedDelivery(
                "a message is delivered, but no committed turn consumed it", message_id=key
            )
        self.delivered[key] = ""
        del self.pending[key]

    def message_dead(self, line: LogLine) -> None:
        key = line.data["message_id"]
        if key not in self.pending:
            raise self._not_pending(key)
        if self.presentations[key] < MOST_PRESENTATIONS:
            raise PrematureDeadLetter(
                "a message is dead before its last presentation", message_id=key,
                expected=MOST_PRESENTATIONS, actual=self.presentations[key],
            )  # fmt: skip
        self.dead[key] = line.data["reason"]
        del self.pending[key]

    # --- turns

    def turn_start(self, line: LogLine) -> None:
        self._require_alive("a turn started")
        turn_id, presented = line.data["turn_id"], tuple(line.data["presented"])
        if turn_id in self.turns or turn_id in self.open_starts or turn_id in self.failed:
            raise Duplicated("two turns have the same id", turn_id=turn_id)
        self._require_oldest(presented)
        exhausted = [key for key in presented if self.presentations[key] >= MOST_PRESENTATIONS]
        if exhausted:
            raise EndlessPresentation(
                "a message is presented again after its last presentation",
                messages=exhausted, most=MOST_PRESENTATIONS,
            )  # fmt: skip
        count, trigger_id = len(self.turns), line.data.get("trigger_id")
        if trigger_id in self.cancelled:
            raise Resurrected(
                "a reminder is shown after a committed turn cancelled it", reminder_id=trigger_id,
                cancelled_in=self.cancelled[trigger_id],
            )  # fmt: skip
        start = StartRecord(turn_id, line.seq, line.data["prompt"], presented, count, trigger_id)
        self.starts.pop(turn_id, None)
        self.starts[turn_id] = self.open_starts[turn_id] = start
        self.presentations.update(presented)
        self.gate.start(turn_id, line.seq)

    def turn_failed(self, line: LogLine) -> None:
        turn_id = line.data["turn_id"]
        if turn_id in self.turns:
            raise InvalidState("a committed turn failed", turn_id=turn_id)
        self.failed.add(turn_id)
        start = self.open_starts.pop(turn_id, None)
        if start is not None and line.data.get("uncounted"):
            # A turn that fails because of the disk does not count as a presentation.
            self.presentations.subtract(start.presented)

    def turn_complete(self, line: LogLine) -> None:
        if self.ended and line.data["terminate"]:
            raise DuplicateCompletion("an agent that has ended completed again", first=self.ended)
        self._require_alive("a turn was committed")
        turn_id = line.data["turn_id"]
        if turn_id in self.turns:
            raise Duplicated("a turn was committed twice", turn_id=turn_id)
        if turn_id in self.failed:
            raise InvalidState("a failed turn was committed", turn_id=turn_id)
        start = self.starts.get(turn_id)
        if start is not None and next(reversed(self.starts)) != turn_id:
            raise OverlappingTurns(
                "a turn was committed after a later turn had started", turn_id=turn_id,
                later=next(reversed(self.starts)),
            )  # fmt: skip
        turn = turn_of(line.data, line.seq, len(self.turns), start)
        if start is not None and turn.presented[: len(start.presented)] != start.presented:
            raise PresentedMismatch(
                "a turn consumed other messages than it was started with",
                started_with=start.presented, consumed=turn.presented,
            )  # fmt: skip
        self._pass(turn.dispatched, line.seq)
        self._require_oldest(turn.presented)
        for key in turn.presented:
            self.delivered[key] = turn_id
            del self.pending[key]
        self.gate.commit(turn)
        self.turns[turn_id] = turn
        self.open_starts.pop(turn_id, None)
        add_effects(self, turn)
        if turn.terminate:
            self._end("completed", turn.returned)
        elif turn.returned:
            raise UnreturnedMessages(
                "a turn that does not end its agent returned messages", returned=turn.returned
            )

    def turn_dispatched(self, line: LogLine) -> None:
        self._pass(line.data["dispatched"], line.seq)

    def _pass(self, dispatched: int, seq: int) -> None:
        """Move the watermark; a line without a watermark has the watermark 0."""
        if dispatched and not self.dispatched <= dispatched < seq:
            raise InvalidState(
                "the watermark of a turn goes back, or is not below its line",
                before=self.dispatched, dispatched=dispatched, seq=seq,
            )  # fmt: skip
        self.dispatched = max(self.dispatched, dispatched)

    def _require_oldest(self, presented: tuple[str, ...]) -> None:
        """Require that these are the oldest pending messages, in their order."""
        if tuple(islice(self.pending, len(presented))) == presented:
            return
        for key in presented:
            if key not in self.pending:
                raise self._not_pending(key)
        raise SkippedMessage(
            "a message was presented while an older one was pending",
            pending=list(self.pending), presented=list(presented),
        )  # fmt: skip

    def _not_pending(self, key: str) -> Violation:
        if key in self.delivered:
            return DuplicateDelivery(
                "a delivered message was used again", message_id=key,
                delivered_in=self.delivered[key],
            )  # fmt: skip
        if key in self.dead:
            return Resurrected("a dead message was used again", message_id=key)
        return Phantom("a message was used that was never enqueued", message_id=key)

    @property
    def active_reminders(self) -> list[str]:
        """The reminders that were neither shown, enqueued by an older version, nor cancelled."""
        over = {*self.enqueued, *self.cancelled, *self.handled}
        return [key for key in self.reminders if key not in over]

    # --- controls

    def control(self, line: LogLine) -> None:
        self._require_alive("a control was applied")
        key, op = line.data["control_id"], line.event.removeprefix("tool.")
        if key in self.applied_controls:
            raise Duplicated("a control was applied twice", control_id=key)
        self.applied_controls[key] = line.seq, op, line.data["by"]
        self.gate.control(op, line.seq)


_HANDLERS: Final = {
    "session.created": SessionState.session_created,
    "agent.created": SessionState.agent_created,
    "agent.terminated": SessionState.terminated,
    "log.snapshot": SessionState.log_snapshot,
    "message.enqueued": SessionState.message_enqueued,
    "message.delivered": SessionState.message_delivered,
    "message.dead": SessionState.message_dead,
    "turn.start": SessionState.turn_start,
    "turn.failed": SessionState.turn_failed,
    "turn.complete": SessionState.turn_complete,
    "turn.dispatched": SessionState.turn_dispatched,
    "tool.gate": SessionState.control,
    "tool.ungate": SessionState.control,
    "tool.permit_turn": SessionState.control,
}
