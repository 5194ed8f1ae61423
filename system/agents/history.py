"""The fold of one log: everything that a session is, from its lines alone.

Pure: lines in, values out. The running session feeds it every line that it has written,
recovery every line that it has found, so both always know the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

from system.agents import event
from system.agents.message import UNANSWERED, Message, MessageKind
from system.ports import Exchange, Json, JsonObject
from system.storage.line import Line

OPERATOR: Final = "operator"
COMPLETED: Final = "completed"


class AgentFacts(NamedTuple):
    """What ``agent.created`` says; ``parent_session_id`` is None for a root."""

    agent_id: str
    name: str
    parent_session_id: str | None
    instructions: str
    request_id: str | None


class SessionFacts(NamedTuple):
    """What ``session.created`` says."""

    provider: str
    model: str
    system_prompt: str


@dataclass(slots=True)
class OpenTurn:
    """What ``turn.start`` says; ``permitted``: it uses up a permit, for the gate is closed."""

    prompt: str
    presented: Sequence[str]
    permitted: bool


class History:
    """The state of one session.

    ``enqueued`` are the ids of all messages that it was ever given; ``pending`` are those to
    be presented, in order, ``presentations`` how often each was; ``senders`` are the agents
    that have said something of their own in them. ``open_turns`` have a
    ``turn.start`` and no end. ``completed`` are the data of all
    ``turn.complete`` lines: what was promised; ``completed_children`` are the agents whose
    response is here. ``ended`` is empty while the agent lives.
    ``unkept`` are messages of which their senders must be told that nobody will see them,
    with the reason. ``ignored`` counts lines of unknown events; ``last_ts`` is the time of
    the last line.
    """

    __slots__ = (
        "agent", "completed", "completed_children", "controls", "ended", "enqueued",
        "exchanges", "gated", "identity", "ignored", "last_ts", "metadata", "open_turns",
        "pending", "permits",
        "presentations", "reminders", "senders", "session", "subscriptions",
        "termination_logged", "turns",
        "unkept",
    )  # fmt: skip

    def __init__(self) -> None:
        self.session: SessionFacts | None = None
        self.agent: AgentFacts | None = None
        self.identity = ""
        self.enqueued: set[str] = set()
        self.senders: set[str] = set()
        self.pending: dict[str, Message] = {}
        self.presentations: dict[str, int] = {}
        self.open_turns: dict[str, OpenTurn] = {}
        self.turns: list[str] = []
        self.exchanges: list[Exchange] = []
        self.completed: list[JsonObject] = []
        self.completed_children: set[str] = set()
        self.controls: set[str] = set()
        self.subscriptions: dict[str, str] = {}
        self.reminders: dict[str, tuple[int, Json]] = {}
        self.metadata: JsonObject = {}
        self.gated = False
        self.permits = 0
        self.ended = ""
        self.termination_logged = False
        self.unkept: dict[str, tuple[Message, str]] = {}
        self.ignored = 0
        self.last_ts = ""

    @classmethod
    def from_lines(cls, lines: Iterable[Line]) -> History:
        """Return the fold of all lines of a log."""
        history = cls()
        history.apply(lines)
        return history

    def apply(self, lines: Iterable[Line]) -> None:
        """Take in the next lines; ``KeyError`` or ``ValueError`` if their data are not ours."""
        folds = self._APPLY
        for _, self.last_ts, _, event_name, data, _ in lines:
            if event_name in folds:
                folds[event_name](self, data)
            else:
                self.ignored += 1

    def knows(self, key: str) -> bool:
        """Whether the line of this id (a message's, or a control's) is there."""
        return key in self.enqueued or key in self.controls

    def give_up(self, turn_id: str, *, counts: bool) -> None:
        """Forget a turn that began; unless it ``counts``, its messages were not presented by it."""
        turn = self.open_turns.pop(turn_id, None)
        if turn is None or counts:
            return
        for message_id in turn.presented:
            if message_id in self.presentations:
                self.presentations[message_id] -= 1

    # -- one event each ------------------------------------------------------------------

    def _session_created(self, data: JsonObject) -> None:
        self.session = SessionFacts(
            str(data["provider"]), str(data["model"]), str(data["system_prompt"])
        )
        self.identity = str(data["identity"])

    def _session_restored(self, data: JsonObject) -> None:
        self.identity = str(data["identity"])

    def _agent_created(self, data: JsonObject) -> None:
        parent, request_id = data["parent_session_id"], data["request_id"]
        self.agent = AgentFacts(
            str(data["agent_id"]),
            str(data["name"]),
            None if parent is None else str(parent),
            str(data["instructions"]),
            None if request_id is None else str(request_id),
        )

    def _agent_terminated(self, data: JsonObject) -> None:
        self.termination_logged = True
        if not self.ended:
            self._end(OPERATOR, data.get("returned"))

    def _message_enqueued(self, data: JsonObject) -> None:
        message = Message.of_data(data)
        self.enqueued.add(message.message_id)
        self.pending[message.message_id] = message
        if message.kind not in UNANSWERED:
            self.senders.add(message.sender)
        if message.kind is MessageKind.RESPONSE:
            self.completed_children.add(message.sender)
        elif message.kind is MessageKind.REMINDER:
            self.reminders.pop(message.message_id, None)
        elif message.kind is MessageKind.SYSTEM:
            # The notice of a recovery. Another turn may have begun before it could be written.
            for turn_id in _strings(_object(message.payload).get("lost_turns")):
                self.give_up(turn_id, counts=True)

    def _message_delivered(self, data: JsonObject) -> None:
        self._settled(str(data["message_id"]))

    def _message_dead(self, data: JsonObject) -> None:
        self._return(str(data["message_id"]), str(data["reason"]))

    def _turn_start(self, data: JsonObject) -> None:
        presented = _strings(data["presented"])
        permitted = self.gated and self.permits > 0
        self.open_turns[str(data["turn_id"])] = OpenTurn(str(data["prompt"]), presented, permitted)
        for message_id in presented:
            self.presentations[message_id] = self.presentations.get(message_id, 0) + 1

    def _turn_failed(self, data: JsonObject) -> None:
        self.give_up(str(data["turn_id"]), counts="uncounted" not in data)

    def _turn_complete(self, data: JsonObject) -> None:
        turn_id = str(data["turn_id"])
        begun = self.open_turns.pop(turn_id, None)
        self.turns.append(turn_id)
        self.exchanges.append(Exchange(begun.prompt if begun else "", str(data["response"])))
        self.completed.append(data)
        for message_id in _strings(data["presented"]):
            self._settled(message_id)
        provider = data["provider"]
        if isinstance(provider, dict):
            self.identity = str(provider["identity"])
        if "permitted" in data:
            self.permits = max(0, self.permits - 1)
        if "metadata" in data:
            self.metadata.update(_object(data["metadata"]))
        self._waiting_for(data)
        if data["terminate"]:
            self._end(COMPLETED, data.get("returned"))

    def _waiting_for(self, data: JsonObject) -> None:
        for added in objects(data.get("subscribed")):
            self.subscriptions[str(added["subscription_id"])] = str(added["target"])
        for subscription_id in _strings(data.get("unsubscribed")):
            self.subscriptions.pop(subscription_id, None)
        for added in objects(data.get("reminders")):
            due_ns = int(str(added["due_ns"]))
            self.reminders[str(added["reminder_id"])] = (due_ns, added["payload"])
        for reminder_id in _strings(data.get("cancelled")):
            self.reminders.pop(reminder_id, None)

    def _gate(self, data: JsonObject) -> None:
        self.gated = True
        self.controls.add(str(data["control_id"]))

    def _ungate(self, data: JsonObject) -> None:
        self.gated = False
        self.permits = 0
        for turn in self.open_turns.values():
            turn.permitted = False
        self.controls.add(str(data["control_id"]))

    def _permit_turn(self, data: JsonObject) -> None:
        self.permits += 1
        self.controls.add(str(data["control_id"]))

    def _passed(self, _data: JsonObject) -> None:
        """A line for people."""

    def _settled(self, message_id: str) -> None:
        # The line that brought it may be damaged; this one says that it was here.
        self.enqueued.add(message_id)
        self.pending.pop(message_id, None)
        self.presentations.pop(message_id, None)

    def _return(self, message_id: str, reason: str) -> None:
        message = self.pending.get(message_id)
        if message is not None:
            self.unkept[message_id] = message, reason
        self._settled(message_id)

    def _end(self, how: str, returned: Json) -> None:
        self.ended = how
        for message_id in _strings(returned):
            # Whoever ended an agent that had not begun knows what it was to do.
            if (
                message_id in self.pending
                and self.pending[message_id].kind is not MessageKind.BOOTSTRAP
            ):
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
            event.MESSAGE_ENQUEUED: _message_enqueued,
            event.MESSAGE_DELIVERED: _message_delivered,
            event.MESSAGE_DEAD: _message_dead,
            event.TURN_START: _turn_start,
            event.TURN_FAILED: _turn_failed,
            event.TURN_COMPLETE: _turn_complete,
            event.GATE: _gate,
            event.UNGATE: _ungate,
            event.PERMIT_TURN: _permit_turn,
            event.SUSPEND_RESULT: _passed,
        }
    )


def _strings(value: Json) -> list[str]:
    """Return a list of ids as it stands in a line; a list that is left out is empty."""
    return [str(item) for item in value] if isinstance(value, list) else []


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def objects(value: Json) -> list[JsonObject]:
    """Return a list of objects as it stands in a line; a list that is left out is empty."""
    return [_object(item) for item in value] if isinstance(value, list) else []
