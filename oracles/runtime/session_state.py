"""What the lines of one log add up to, and the laws that hold inside one log (V-5, V-8).

The state reads the lines from the first, and stops at the first line that breaks a law; the
violation is kept, for whoever judges to raise (damage may excuse a session).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from itertools import islice
from typing import Any, Final

from oracles.runtime.log_reader import LogLine, ParsedLog
from oracles.runtime.log_records import (
    KINDS,
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
from oracles.runtime.violations import (
    DuplicateCompletion,
    DuplicateDelivery,
    GateIgnored,
    MisroutedMessage,
    OverlappingTurns,
    PrematureDeadLetter,
    PresentedMismatch,
    SkippedMessage,
    UnpresentedDelivery,
    UnreturnedMessages,
    WriteAfterEnd,
)
from oracles.violation import CorruptLog, Duplicated, InvalidState, Phantom, Resurrected, Violation

MOST_PRESENTATIONS: Final = 5

_GROWING: Final = (dict, list, set)


class SessionState:
    """The state of one session, or of USER; everything in the order of its lines.

    ``session_id`` is the name of the log's directory, so USER's is ``user``; ``agent_id`` is
    an empty text before ``agent.created``.

    ``sent`` maps each message of an outbox to the order in which it was sent;
    ``bootstraps`` the first messages of children to their spawns.
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
        self.failed: set[str] = set()
        self.delivered: dict[str, str] = {}
        self.dead: dict[str, str] = {}
        self.returned: tuple[str, ...] = ()
        self.ended = ""
        self.finished = False
        self.gate_seq = 0
        self.permits = 0
        self.unused_permits = 0
        self.forbidden_starts: list[tuple[int, int]] = []
        self.permitted_starts: set[str] = set()
        self.obeyed: dict[str, tuple[int, str, str]] = {}
        self.metadata: dict[str, Any] = {}
        self.sent: dict[str, tuple[tuple[int, int], MessageRecord]] = {}
        self.bootstraps: dict[str, SpawnRecord] = {}
        self.controls: dict[str, ControlRecord] = {}
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.unsubscribed: dict[str, int] = {}
        self.reminders: dict[str, ReminderRecord] = {}
        self.cancelled: dict[str, int] = {}
        self.notices: dict[str, MessageRecord] = {}
        self.unknown = 0
        self.violation: Violation | None = None
        self.take(log.lines)

    def extended(self, log: ParsedLog) -> SessionState:
        """Return the state of a log that begins with this one's; this one stays as it is."""
        if self.violation is not None:
            return self
        grown = copy(self)
        vars(grown).update(
            (name, value.copy())
            for name, value in vars(self).items()
            if isinstance(value, _GROWING)
        )
        grown.log = log
        grown.take(log.lines[len(self.log.lines) :])
        return grown

    @property
    def gated(self) -> bool:
        """Whether the last word on the gate was to close it."""
        return self.gate_seq > 0

    def take(self, lines: Iterable[LogLine]) -> None:
        """SessionState in the next lines, up to the first that breaks a law."""
        for line in lines:
            handler = _HANDLERS.get(line.event)
            if handler is None:
                self.unknown += 1
                continue
            try:
                handler(self, line)
            except Violation as violation:
                violation.evidence.update(path=self.path, line=line.raw)
                self.violation = violation
                return
            except (KeyError, TypeError) as error:
                self.violation = CorruptLog(
                    "a line lacks what its event demands",
                    path=self.path, lacks=repr(error), line=line.raw,
                )  # fmt: skip
                return

    # --- beginning and end

    def session_created(self, line: LogLine) -> None:
        if line.seq != 1:
            raise InvalidState("a session was created twice, or late")
        self.created = line.data

    def agent_created(self, line: LogLine) -> None:
        if line.seq != 2 or not self.created:
            raise InvalidState("an agent was not created right after its session")
        self.agent = agent_of(line.data)
        self.agent_id = self.agent.agent_id

    def terminated(self, line: LogLine) -> None:
        reason = line.data["reason"]
        if self.finished or (self.ended and reason == "operator"):
            raise DuplicateCompletion("an agent ended twice")
        if reason not in ("completed", "operator") or line.data["agent_id"] != self.agent_id:
            raise InvalidState("an end that is none of this agent's")
        if reason == "completed" and not self.ended:
            raise InvalidState("an agent counts as completed without a turn that says so")
        if not self.ended:
            self._end(reason, tuple(line.data["returned"]))
        self.finished = True

    def _end(self, reason: str, returned: tuple[str, ...]) -> None:
        if returned != tuple(self.pending):
            raise UnreturnedMessages(
                "an agent left messages unread that were not returned, or the reverse",
                unread=list(self.pending), returned=returned,
            )  # fmt: skip
        self.ended, self.returned = reason, returned
        self.pending.clear()

    def _must_live(self, what: str) -> None:
        if self.ended:
            raise WriteAfterEnd(f"{what} after the end of the agent")

    # --- messages

    def message_enqueued(self, line: LogLine) -> None:
        self._must_live("a message was enqueued")
        message = message_of(line.data)
        key = message.message_id
        if key in self.enqueued:
            raise Duplicated("a message was enqueued twice", message=message)
        if message.recipient != ("USER" if self.is_user else self.agent_id):
            raise MisroutedMessage("a message is in the wrong log", owner=self.agent_id)
        if message.kind not in KINDS:
            raise Phantom("a message of no known kind")
        self.enqueued[key] = message
        self.positions[key] = line.seq
        self.pending[key] = None
        if message.kind == "system":
            self.notices[key] = message

    def message_delivered(self, line: LogLine) -> None:
        key = line.data["message_id"]
        if key in self.delivered:
            return
        if key not in self.enqueued:
            raise Phantom("a message is delivered that was never enqueued")
        if not self.is_user:
            raise UnpresentedDelivery("a message is delivered that no turn has consumed")
        self.delivered[key] = ""
        del self.pending[key]

    def message_dead(self, line: LogLine) -> None:
        key = line.data["message_id"]
        if key not in self.pending:
            raise self._not_pending(key)
        if self.presentations[key] < MOST_PRESENTATIONS:
            raise PrematureDeadLetter(
                "a message was given up too early", presentations=self.presentations[key]
            )
        self.dead[key] = line.data["reason"]
        del self.pending[key]

    # --- turns

    def turn_start(self, line: LogLine) -> None:
        self._must_live("a turn began")
        turn_id, presented = line.data["turn_id"], tuple(line.data["presented"])
        if turn_id in self.turns or turn_id in self.open_starts or turn_id in self.failed:
            raise Duplicated("two turns have one id")
        self._must_be_oldest(presented)
        start = StartRecord(turn_id, line.seq, line.data["prompt"], presented, len(self.turns))
        self.starts.pop(turn_id, None)
        self.starts[turn_id] = self.open_starts[turn_id] = start
        self.presentations.update(presented)
        if self.gate_seq and self.permits:
            self.permitted_starts.add(turn_id)
        elif self.gate_seq:
            self._overlook(self.gate_seq, line.seq)

    def _overlook(self, gate_seq: int, start_seq: int) -> None:
        """Note a turn that a gate forbids: one may have begun while the gate was on its way."""
        if self.forbidden_starts and self.forbidden_starts[-1][0] == gate_seq:
            raise GateIgnored("a gated agent ran turn after turn")
        self.forbidden_starts.append((gate_seq, start_seq))

    def turn_failed(self, line: LogLine) -> None:
        turn_id = line.data["turn_id"]
        if turn_id in self.turns:
            raise InvalidState("a turn failed that is complete")
        self.failed.add(turn_id)
        start = self.open_starts.pop(turn_id, None)
        if start is not None and line.data.get("uncounted"):
            # The disk's fault, which is not that of the messages.
            self.presentations.subtract(start.presented)

    def turn_complete(self, line: LogLine) -> None:
        if self.ended and line.data["terminate"]:
            raise DuplicateCompletion("an agent completed twice")
        self._must_live("a turn was committed")
        turn_id = line.data["turn_id"]
        if turn_id in self.turns:
            raise Duplicated("a turn was committed twice")
        if turn_id in self.failed:
            raise InvalidState("a turn was committed that had failed")
        start = self.starts.get(turn_id)
        if start is not None and next(reversed(self.starts)) != turn_id:
            raise OverlappingTurns("a turn was committed after a later one had begun")
        turn = turn_of(line.data, line.seq, len(self.turns), start)
        if start is not None and turn.presented[: len(start.presented)] != start.presented:
            raise PresentedMismatch("a turn does not consume what it began with", start=start)
        self._must_be_oldest(turn.presented)
        for key in turn.presented:
            self.delivered[key] = turn_id
            del self.pending[key]
        is_permitted = turn_id in self.permitted_starts if start is not None else self.permits > 0
        if turn.permitted and not is_permitted:
            raise GateIgnored("a turn counts as permitted, and nobody permitted it")
        if turn.permitted:
            self.permits -= 1
            self.unused_permits = max(0, self.unused_permits - 1)
        elif turn_id in self.permitted_starts:
            raise GateIgnored("a gated agent ran, and used up no permit", turn_id=turn_id)
        self.turns[turn_id] = turn
        self.open_starts.pop(turn_id, None)
        self._promise(turn)
        if turn.terminate:
            self._end("completed", turn.returned)
        elif turn.returned:
            raise UnreturnedMessages("an agent that goes on has returned messages")

    def _must_be_oldest(self, presented: tuple[str, ...]) -> None:
        """Messages are presented oldest first, and only while they are pending."""
        if tuple(islice(self.pending, len(presented))) == presented:
            return
        for key in presented:
            if key not in self.pending:
                raise self._not_pending(key)
        raise SkippedMessage(
            "an older message was passed over", presented=presented, pending=list(self.pending)
        )

    def _not_pending(self, key: str) -> Violation:
        if key in self.delivered:
            return DuplicateDelivery("a message is back that a turn had consumed", message_id=key)
        if key in self.dead:
            return Resurrected("a dead message is back", message_id=key)
        return Phantom("a message is used that was never enqueued", message_id=key)

    def _promise(self, turn: TurnRecord) -> None:
        """Note what a committed turn demands elsewhere; ids are used once."""
        for place, message in enumerate(turn.outbox):
            self._fresh(self.sent, message.message_id)
            self.sent[message.message_id] = (turn.number, place), message
        for spawn in turn.spawned:
            self._fresh(self.bootstraps, spawn.bootstrap_id)
            self.bootstraps[spawn.bootstrap_id] = spawn
        for control in turn.controls:
            self._fresh(self.controls, control.control_id)
            self.controls[control.control_id] = control
        for subscription in turn.subscribed:
            self._fresh(self.subscriptions, subscription.subscription_id)
            self.subscriptions[subscription.subscription_id] = subscription
        for reminder in turn.reminders:
            self._fresh(self.reminders, reminder.reminder_id)
            self.reminders[reminder.reminder_id] = reminder
        self.unsubscribed.update(dict.fromkeys(turn.unsubscribed, turn.seq))
        self.cancelled.update(dict.fromkeys(turn.cancelled, turn.seq))
        self.metadata.update(turn.metadata)

    def _fresh(self, taken: Mapping[str, object], key: str) -> None:
        if key in taken:
            raise Duplicated("two promises have one id", id=key)

    # --- gates

    def control(self, line: LogLine) -> None:
        self._must_live("a control was obeyed")
        key, op = line.data["control_id"], line.event.removeprefix("tool.")
        if key in self.obeyed:
            raise Duplicated("a control was obeyed twice", control_id=key)
        self.obeyed[key] = line.seq, op, line.data["by"]
        if op == "gate":
            self.gate_seq = self.gate_seq or line.seq
        elif op == "ungate":
            # It ends all permits, that of a turn under way as well.
            self.gate_seq = self.permits = self.unused_permits = 0
            self.permitted_starts.clear()
        else:
            self.permits += 1
            # Of a permit that came while nothing was gated, nobody says how long it counts.
            self.unused_permits += self.gated


_HANDLERS: Final = {
    "session.created": SessionState.session_created,
    "agent.created": SessionState.agent_created,
    "agent.terminated": SessionState.terminated,
    "message.enqueued": SessionState.message_enqueued,
    "message.delivered": SessionState.message_delivered,
    "message.dead": SessionState.message_dead,
    "turn.start": SessionState.turn_start,
    "turn.failed": SessionState.turn_failed,
    "turn.complete": SessionState.turn_complete,
    "tool.gate": SessionState.control,
    "tool.ungate": SessionState.control,
    "tool.permit_turn": SessionState.control,
}
