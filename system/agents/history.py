"""The state of one session, computed from its log line by line.

A running session applies every line that it has written, recovery every line that it has read, so
both reach the same state. This module does no input or output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final

from system.agents import event
from system.agents.message import (
    ANSWERED_IF_DEAD,
    RUNTIME,
    UNANSWERED,
    USER,
    Message,
    MessageKind,
)
from system.agents.outbox import EMPTY_OUTBOX, Spawn, objects, strings
from system.agents.session_data import (
    LAST_TURNS,
    AgentData,
    Execution,
    OpenTurn,
    RecordedTurn,
    SessionData,
    Unreachable,
    optional_text,
)
from system.agents.turn_complete import Reminder, TurnComplete
from system.ports import Exchange, JsonObject
from system.storage.line import Line

SNAPSHOT_FORMAT: Final = 1
OPERATOR: Final = "operator"
COMPLETED: Final = "completed"


class History:
    """The state of one session.

    ``enqueued`` are the ids of the messages that the session received, including those of the
    operator (``from_user``). A snapshot omits the ids of entries that are dispatched, and ids that
    ``state.db`` has: then ``has_known_ids`` is set. ``pending`` are the messages to be presented,
    in order, ``presentations`` the number of times that each was presented. ``senders`` are the
    agents that have sent it anything but a reply of the runtime. ``sources`` are the agents of
    which it has lines since the last snapshot. ``dispatched_of`` has, for each session, the
    number of the line up to which its outboxes have all arrived here. ``open_turns`` have a
    ``turn.start`` and no end. ``exchanges`` are the completed turns since the last snapshot.
    ``seq`` is the number of the last line. ``dispatched`` is the watermark according to the log;
    ``applied`` is the last line up to it with entries for ``state.db``. ``outbox`` are the turns
    with entries, by the number of their line, and ``unreachable`` the messages about which an
    error is sent; ``drop_dispatched`` removes the dispatched ones from both. ``children`` are all
    spawned children by session id; ``completed_children`` are the agents whose response has
    arrived. ``ended`` is empty until the agent ends. ``ignored`` counts lines of unknown events;
    ``last_ts`` is the time of the last line. ``recorded`` are the committed turns of which recovery
    has not completed the records.
    """

    __slots__ = (
        "agent", "applied", "children", "completed_children", "controls", "dispatched",
        "dispatched_of",
        "ended", "enqueued", "exchanges", "from_user", "gated", "has_known_ids", "identity",
        "ignored", "last_ts", "last_turns", "metadata", "open_turns", "outbox",
        "pending", "permits", "presentations", "recorded", "reminders", "retry_of",
        "senders", "seq", "session", "sources", "subscriptions", "termination_logged", "turn_count",
        "unreachable",
    )  # fmt: skip

    def __init__(self) -> None:
        self.session: SessionData | None = None
        self.agent: AgentData | None = None
        self.identity = ""
        self.enqueued: set[str] = set()
        self.from_user: set[str] = set()
        self.has_known_ids = False
        self.senders: set[str] = set()
        self.sources: set[str] = set()
        self.dispatched_of: dict[str, int] = {}
        self.pending: dict[str, Message] = {}
        self.presentations: dict[str, int] = {}
        self.open_turns: dict[str, OpenTurn] = {}
        self.turn_count = 0
        self.last_turns: deque[str] = deque(maxlen=LAST_TURNS)
        self.exchanges: list[Exchange] = []
        self.seq = 0
        self.dispatched = 0
        self.applied = 0
        self.outbox: dict[int, TurnComplete] = {}
        self.children: dict[str, Spawn] = {}
        self.recorded: list[RecordedTurn] = []
        self.retry_of: str | None = None
        self.completed_children: set[str] = set()
        self.controls: set[str] = set()
        self.subscriptions: dict[str, str] = {}
        self.reminders: dict[str, Reminder] = {}
        self.metadata: JsonObject = {}
        self.gated = False
        self.permits = 0
        self.ended = ""
        self.termination_logged = False
        self.unreachable: dict[str, Unreachable] = {}
        self.ignored = 0
        self.last_ts = ""

    @classmethod
    def from_lines(cls, lines: Iterable[Line]) -> History:
        """Return the state after all lines of a log; raise as ``apply``."""
        history = cls()
        history.apply(lines)
        return history

    def apply(self, lines: Iterable[Line]) -> None:
        """Apply the next lines; raise ``KeyError`` or ``ValueError`` for foreign data."""
        apply = self._APPLY
        for self.seq, self.last_ts, _, event_name, data, _ in lines:
            if event_name in apply:
                apply[event_name](self, data)
            else:
                self.ignored += 1

    def apply_turn(self, turn: TurnComplete, seq: int, ts: str) -> None:
        """Apply a turn that was committed in line ``seq`` at ``ts``."""
        begun = self.open_turns.pop(turn.turn_id, None)
        self.seq, self.last_ts, self.retry_of = seq, ts, None
        self.dispatched = max(self.dispatched, turn.dispatched)
        if turn.outbox != EMPTY_OUTBOX or turn.has_state_entries:
            self.outbox[seq] = turn
            self.children.update((spawn.session_id, spawn) for spawn in turn.outbox.spawned)
        self.turn_count += 1
        self.last_turns.append(turn.turn_id)
        self.exchanges.append(Exchange(begun.prompt if begun else "", turn.response))
        for message_id in turn.presented:
            self._settle(message_id)
        self.identity = turn.identity
        if turn.permitted:
            self.permits = max(0, self.permits - 1)
        self.metadata.update(turn.metadata)
        self.subscriptions.update(turn.subscribed)
        for subscription_id in turn.unsubscribed:
            self.subscriptions.pop(subscription_id, None)
        for reminder in turn.reminders:
            self.reminders[reminder.reminder_id] = reminder
        for reminder_id in (*turn.cancelled, turn.trigger_id or ""):
            self.reminders.pop(reminder_id, None)
        if turn.terminate:
            self._end(COMPLETED, turn.returned)

    def begin_turn(
        self, turn_id: str, prompt: str, presented: Sequence[str], ts: str,
        execution: Execution | None = None,
    ) -> None:  # fmt: skip
        """Apply the start of a turn, which was written at ``ts``."""
        self.last_ts = ts
        permitted = self.gated and self.permits > 0
        self.open_turns[turn_id] = OpenTurn(prompt, presented, permitted, execution, ts)
        for message_id in presented:
            self.presentations[message_id] = self.presentations.get(message_id, 0) + 1

    def drop_dispatched(self) -> None:
        """Remove the outboxes of the lines up to ``dispatched``."""
        for seq in [seq for seq in self.outbox if seq <= self.dispatched]:
            if self.outbox.pop(seq).has_state_entries:
                self.applied = max(self.applied, seq)
        for key in [key for key, lost in self.unreachable.items() if lost.seq <= self.dispatched]:
            del self.unreachable[key]

    def knows(self, key: str) -> bool:
        """Whether the line of this id (a message's, or a control's) is in the log."""
        return key in self.enqueued or key in self.controls

    def abandon_turn(self, turn_id: str, *, counts: bool) -> None:
        """Close a turn that has not completed; unless it ``counts``, it presented no message."""
        turn = self.open_turns.pop(turn_id, None)
        if turn is None:
            return
        self.retry_of = turn.execution_id or self.retry_of
        if counts:
            return
        for message_id in turn.presented:
            if message_id in self.presentations:
                self.presentations[message_id] -= 1

    # -- snapshots -----------------------------------------------------------------------

    def _snapshot(self, data: JsonObject) -> None:
        """Replace this state by that of a snapshot."""
        if int(str(data["format"])) > SNAPSHOT_FORMAT:
            raise ValueError(f"format={data['format']}, known is format={SNAPSHOT_FORMAT}")
        session, agent, presentations, subscriptions, self.metadata = objects(
            [
                data[name] or {}
                for name in ("session", "agent", "presentations", "subscriptions", "metadata")
            ]
        )
        self.session = SessionData.from_data(session) if session else None
        self.agent = AgentData.from_data(agent) if agent else None
        self.identity = str(data["identity"])
        self.turn_count = int(str(data["turn_count"]))
        self.last_turns = deque(strings(data["last_turns"]), LAST_TURNS)
        self.exchanges.clear()
        pending = [Message.from_data(message) for message in objects(data["pending"])]
        self.pending = {message.message_id: message for message in pending}
        self.presentations = {key: int(str(count)) for key, count in presentations.items()}
        self.open_turns = {
            str(turn["turn_id"]): OpenTurn.from_data(turn) for turn in objects(data["open_turns"])
        }
        self.retry_of = optional_text(data["retry_of"])
        self.subscriptions = {key: str(target) for key, target in subscriptions.items()}
        reminders = [Reminder.from_data(reminder) for reminder in objects(data["reminders"])]
        self.reminders = {reminder.reminder_id: reminder for reminder in reminders}
        self.gated, self.permits = bool(data["gated"]), int(str(data["permits"]))
        self._take_outbox(data)

    def _take_outbox(self, data: JsonObject) -> None:
        """Take over the outboxes of a snapshot, and the watermarks of other logs."""
        children = [Spawn.from_data(spawn) for spawn in objects(data["children"])]
        self.children = {spawn.session_id: spawn for spawn in children}
        self.completed_children = set(strings(data["completed_children"]))
        self.outbox = {
            int(str(entry["seq"])): TurnComplete.from_data(*objects([entry["turn"]]))
            for entry in objects(data["promises"])
        }
        unreachable = [Unreachable.from_data(lost) for lost in objects(data["unreachable"])]
        self.unreachable = {lost.message.message_id: lost for lost in unreachable}
        (dispatched_of,) = objects([data["dispatched_of"]])
        self.dispatched_of = {key: int(str(mark)) for key, mark in dispatched_of.items()}
        self.dispatched = int(str(data["dispatched"]))
        self.applied = int(str(data["applied"]))
        self.sources.clear()
        self.senders = set(strings(data["senders"]))
        self.from_user = set(strings(data["from_user"]))
        self.has_known_ids = bool(data["known_ids"])
        self.enqueued = {*self.from_user, *self.pending, *strings(data["ids"])}
        self.controls = set(strings(data["controls"]))

    # -- one event each ------------------------------------------------------------------

    def _session_created(self, data: JsonObject) -> None:
        self.session = SessionData.from_data(data)
        self.identity = str(data["identity"])

    def _session_restored(self, data: JsonObject) -> None:
        self.identity = str(data["identity"])

    def _agent_created(self, data: JsonObject) -> None:
        self.agent = AgentData.from_data(data)

    def _agent_terminated(self, data: JsonObject) -> None:
        self.termination_logged = True
        if not self.ended:
            self._end(OPERATOR, strings(data.get("returned")))

    def _message_enqueued(self, data: JsonObject) -> None:
        message = Message.from_data(data)
        message_id, sender, kind = message.message_id, message.sender, message.kind
        self.enqueued.add(message_id)
        self.pending[message_id] = message
        if sender == USER:
            self.from_user.add(message_id)
        self.sources.add(sender)
        if sender != RUNTIME and kind not in UNANSWERED:
            self.senders.add(sender)
        if kind is MessageKind.RESPONSE:
            self.completed_children.add(sender)
        elif kind is MessageKind.REMINDER:
            self.reminders.pop(message_id, None)
        elif kind is MessageKind.SYSTEM and isinstance(message.payload, dict):
            # A recovery notice. Another turn may have begun before the notice was written.
            for turn_id in strings(message.payload.get("lost_turns")):
                self.abandon_turn(turn_id, counts=True)

    def _message_delivered(self, data: JsonObject) -> None:
        self._settle(str(data["message_id"]))

    def _message_dead(self, data: JsonObject) -> None:
        self._return(str(data["message_id"]), str(data["reason"]))

    def _turn_start(self, data: JsonObject) -> None:
        presented = data["presented"]
        assert isinstance(presented, list), presented
        self.begin_turn(
            str(data["turn_id"]), str(data["prompt"]), list(map(str, presented)), self.last_ts,
            Execution.from_data(data) if "execution_id" in data else None,
        )  # fmt: skip

    def _turn_failed(self, data: JsonObject) -> None:
        self.abandon_turn(str(data["turn_id"]), counts="uncounted" not in data)

    def _turn_complete(self, data: JsonObject) -> None:
        turn = TurnComplete.from_data(data)
        begun = self.open_turns.get(turn.turn_id)
        if begun is not None and begun.execution is not None:
            self.recorded.append(RecordedTurn(begun.execution, begun, turn, self.last_ts))
        self.apply_turn(turn, self.seq, self.last_ts)

    def _turn_dispatched(self, data: JsonObject) -> None:
        self.dispatched = max(self.dispatched, int(str(data["dispatched"])))

    def _gate(self, data: JsonObject) -> None:
        self.gated = True
        self._applied(data)

    def _ungate(self, data: JsonObject) -> None:
        self.gated = False
        self.permits = 0
        for turn in self.open_turns.values():
            turn.permitted = False
        self._applied(data)

    def _permit_turn(self, data: JsonObject) -> None:
        self.permits += 1
        self._applied(data)

    def _applied(self, data: JsonObject) -> None:
        self.controls.add(str(data["control_id"]))
        self.sources.add(str(data["by"]))

    def _no_effect(self, _data: JsonObject) -> None:
        """Apply a line that has no effect and is only written for readers of the log."""

    def _settle(self, message_id: str) -> None:
        # If the line that enqueued it was damaged, this line still proves that it arrived.
        self.enqueued.add(message_id)
        self.pending.pop(message_id, None)
        self.presentations.pop(message_id, None)

    def _return(self, message_id: str, reason: str) -> None:
        message = self.pending.get(message_id)
        if message is not None:
            self.unreachable[message_id] = Unreachable(message, reason, self.seq)
        self._settle(message_id)

    def _end(self, how: str, returned: Sequence[str]) -> None:
        self.ended = how
        for message_id in returned:
            # No error about a bootstrap: the parent, or the operator, has ended the child.
            if message_id not in self.pending:
                continue
            if self.pending[message_id].kind not in ANSWERED_IF_DEAD:
                self._return(message_id, "the recipient has ended")
        self.pending.clear()
        self.subscriptions.clear()
        self.reminders.clear()

    _APPLY: ClassVar[Mapping[str, Callable[[History, JsonObject], None]]] = MappingProxyType(
        {
            event.SESSION_CREATED: _session_created,
            event.SESSION_RESTORED: _session_restored,
            event.AGENT_CREATED: _agent_created,
            event.AGENT_TERMINATED: _agent_terminated,
            event.LOG_SNAPSHOT: _snapshot,
            event.MESSAGE_ENQUEUED: _message_enqueued,
            event.MESSAGE_DELIVERED: _message_delivered,
            event.MESSAGE_DEAD: _message_dead,
            event.TURN_START: _turn_start,
            event.TURN_FAILED: _turn_failed,
            event.TURN_COMPLETE: _turn_complete,
            event.TURN_DISPATCHED: _turn_dispatched,
            event.GATE: _gate,
            event.UNGATE: _ungate,
            event.PERMIT_TURN: _permit_turn,
            event.SUSPEND_RESULT: _no_effect,
        }
    )
