"""Data of the lines of a session's log; each is also a member of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from system.agents import event
from system.agents.message import Message
from system.agents.outbox import objects, strings
from system.agents.turn_complete import TurnComplete
from system.ports import Exchange, Json, JsonObject
from system.storage.line import Line

LAST_TURNS: Final = 16
"""The number of ids of committed turns that are kept; the others are only counted."""


class AgentData(NamedTuple):
    """The data of ``agent.created``; ``parent_session_id`` is None for a root."""

    agent_id: str
    name: str
    parent_session_id: str | None
    instructions: str
    request_id: str | None

    @classmethod
    def from_data(cls, data: JsonObject) -> AgentData:
        """Decode the data of the line; raise ``KeyError`` if a member is missing."""
        return cls(
            str(data["agent_id"]), str(data["name"]), optional_text(data["parent_session_id"]),
            str(data["instructions"]), optional_text(data["request_id"]),
        )  # fmt: skip


class SessionData(NamedTuple):
    """The data of ``session.created``, without the identity."""

    provider: str
    model: str
    system_prompt: str

    @classmethod
    def from_data(cls, data: JsonObject) -> SessionData:
        """Decode the data of the line; raise ``KeyError`` if a member is missing."""
        return cls(str(data["provider"]), str(data["model"]), str(data["system_prompt"]))


class Execution(NamedTuple):
    """A recorded execution; ``entry`` is the number of the last entry of its start in the log."""

    execution_id: str
    entry: int

    @classmethod
    def from_data(cls, data: JsonObject) -> Execution | None:
        """Decode the execution of a turn; None if it is not recorded."""
        if (execution_id := data.get("execution_id")) is None:
            return None
        return cls(str(execution_id), int(str(data["execution_entry"])))


@dataclass(slots=True)
class OpenTurn:
    """A turn that has begun; if ``permitted``, it uses up a permit, because the gate is closed."""

    prompt: str
    presented: Sequence[str]
    permitted: bool
    execution: Execution | None = None
    ts: str = ""

    @property
    def execution_id(self) -> str | None:
        """The id of its execution, or None if that is not recorded."""
        return None if self.execution is None else self.execution.execution_id

    def data(self, turn_id: str) -> JsonObject:
        """Return the member of a snapshot."""
        return {
            "turn_id": turn_id,
            "prompt": self.prompt,
            "presented": list[Json](self.presented),
            "permitted": self.permitted,
            "execution_id": self.execution_id,
            "execution_entry": None if self.execution is None else self.execution.entry,
            "ts": self.ts,
        }

    @classmethod
    def from_data(cls, data: JsonObject) -> OpenTurn:
        """Decode the result of ``data``; raise ``KeyError`` if a member is missing."""
        return cls(
            str(data["prompt"]), strings(data["presented"]), bool(data["permitted"]),
            Execution.from_data(data), str(data["ts"]),
        )  # fmt: skip


class Unreachable(NamedTuple):
    """A message that is never presented; line ``seq`` says so, and an error is sent about it."""

    message: Message
    reason: str
    seq: int

    def data(self) -> JsonObject:
        """Return the member of a snapshot."""
        return {"message": self.message.data(), "reason": self.reason, "seq": self.seq}

    @classmethod
    def from_data(cls, data: JsonObject) -> Unreachable:
        """Decode the result of ``data``; raise ``KeyError`` or ``ValueError`` for other data."""
        (message,) = objects([data["message"]])
        return cls(Message.from_data(message), str(data["reason"]), int(str(data["seq"])))


class RecordedTurn(NamedTuple):
    """A committed turn whose ``execution`` is recorded; ``ts`` is the time of ``turn.complete``."""

    execution: Execution
    begun: OpenTurn
    turn: TurnComplete
    ts: str


def optional_text(value: Json) -> str | None:
    """Return a text of a line, or None for null."""
    return None if value is None else str(value)


def last_applied(outbox: Mapping[int, TurnComplete], dispatched: int) -> int:
    """Return the last line up to ``dispatched`` with entries for ``state.db``, or 0."""
    durable = [seq for seq, turn in outbox.items() if turn.has_state_entries]
    return max((seq for seq in durable if seq <= dispatched), default=0)


def exchanges_in(lines: Iterable[Line]) -> Iterator[Exchange]:
    """Yield the completed turns in these lines; raises ``KeyError`` for foreign data."""
    prompts: dict[str, str] = {}
    for line in lines:
        if line.event == event.TURN_START:
            prompts[str(line.data["turn_id"])] = str(line.data["prompt"])
        elif line.event == event.TURN_COMPLETE:
            prompt = prompts.get(str(line.data["turn_id"]), "")
            yield Exchange(prompt, str(line.data["response"]))
