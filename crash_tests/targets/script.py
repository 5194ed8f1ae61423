"""Plays: what an agent does in a turn, written into the payload of the message that causes it.

A payload ``{"do": [[tool, arguments], ...], "say": text}`` makes the agent that is shown it
call these tools in this order. So what a run does is in its actions, and the same message
shown again, after a crash took the turn, makes the agent do the same again.

An argument ``"$2"`` stands for the id in the result of the second call of this play, and
``"$"`` for the last id of its kind that any earlier play was given. Where an agent is meant,
``"$child"`` is the one that was spawned last, and ``"$sender"`` whoever sent the message;
``"$message"`` is the id of that message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from powercut.fuzz.action import Json
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from system.ports import Tools

NAMES: Final = ("Ada", "Bob", "Cleo", "Dan", "Eve")
"""Few enough that agents collide."""

MOST_CALLS: Final = 6
SECOND_NS: Final = 1_000_000_000

TOOLS: Final = (
    "send_message", "spawn_agent", "spawn_agent", "spawn_agent", "spawn_agent", "broadcast",
    "check_inbox", "gate", "subscribe", "remind_me", "gate", "permit_turn", "ungate",
    "complete", "poke", "set_agent_metadata", "cancel_reminder", "unsubscribe", "inspect_agent",
    "list_children",
)  # fmt: skip
_IDS: Final = ("reminder_id", "subscription_id", "agent_id", "message_id")
_LEFT_OUT: Final = None
_PROVIDERS: Final = (_LEFT_OUT, _LEFT_OUT, _LEFT_OUT, "bare", "caching", "agentic")
_DELAYS: Final = (0, SECOND_NS, 60 * SECOND_NS)


def propose_script(choices: Choices, depth: int = 0) -> Json:
    """Choose a payload; the simplest is a plain text.

    A message or a child may be given a play of its own, down to two levels.
    """
    calls = choices.integer("calls", 0, MOST_CALLS - 2 * depth) if depth < 2 else 0
    if not calls:
        return text(choices)
    do: list[Json] = []
    tool = ""
    for _ in range(calls):
        tool = _tool(choices, tool)
        do.append([tool, _arguments(choices, tool, depth)])
    return {"do": do, "say": choices.pick("say", ("", "done", "\N{FIRE} gemacht"))}


def _tool(choices: Choices, last: str) -> str:
    """Choose any tool, or one of those that an agent uses after ``last``."""
    if last in _AFTER and choices.integer("goes on", 0, 2):
        return choices.pick("next", _AFTER[last])
    return choices.pick("tool", TOOLS)


_AFTER: Final[Mapping[str, tuple[str, ...]]] = {
    "spawn_agent": ("gate", "subscribe", "gate", "send_message", "subscribe"),
    "gate": ("permit_turn",),
    "permit_turn": ("permit_turn", "send_message"),
    "remind_me": ("complete", "cancel_reminder"),
    "send_message": ("check_inbox", "subscribe"),
    "set_agent_metadata": ("complete",),
}


def _arguments(choices: Choices, tool: str, depth: int) -> dict[str, Json]:
    parameters = _PARAMETERS.get(tool, ("near",))
    chosen = {
        "name" if parameter in ("near", "child") else parameter: _ARGUMENTS[parameter](
            choices, depth
        )
        for parameter in parameters
    }
    return {name: value for name, value in chosen.items() if value is not _LEFT_OUT}


_ARGUMENTS: Final[Mapping[str, Callable[[Choices, int], Json]]] = {
    "child": lambda choices, _: choices.pick("child", (*["$child"] * 12, *NAMES)),
    "delay_ns": lambda choices, _: choices.pick("delay", _DELAYS),
    "instructions": lambda choices, depth: _instructions(propose_script(choices, depth + 1)),
    "key": lambda choices, _: choices.pick("key", ("mood", "plan")),
    "name": lambda choices, _: choices.pick("name", NAMES),
    "near": lambda choices, _: _near(choices),
    "payload": lambda choices, depth: propose_script(choices, depth + 1),
    "model": lambda choices, _: choices.pick("model", (_LEFT_OUT, "small")),
    "provider": lambda choices, _: choices.pick("its provider", _PROVIDERS),
    "reply_to": lambda choices, _: choices.pick("reply to", (_LEFT_OUT, "$message")),
    "reminder_id": lambda choices, _: choices.pick("id", ("$", "$1", "$2")),
    "result": lambda choices, _: text(choices),
    "subscription_id": lambda choices, _: choices.pick("id", ("$", "$1", "$2")),
    "to": lambda choices, _: _near(choices),
    "value": lambda choices, _: text(choices),
}
_PARAMETERS: Final[Mapping[str, tuple[str, ...]]] = {
    "broadcast": ("payload",),
    "gate": ("child",),
    "permit_turn": ("child",),
    "subscribe": ("child",),
    "ungate": ("child",),
    "cancel_reminder": ("reminder_id",),
    "check_inbox": (),
    "complete": ("result",),
    "list_children": (),
    "poke": ("to",),
    "remind_me": ("delay_ns", "payload"),
    "send_message": ("to", "payload", "reply_to"),
    "set_agent_metadata": ("key", "value"),
    "spawn_agent": ("name", "instructions", "provider", "model"),
    "unsubscribe": ("subscription_id",),
}
"""What each tool is given; the others are given the name of an agent."""


def _near(choices: Choices) -> str:
    return choices.pick("to", ("$child", "$sender", *NAMES, "$child", "USER", "nobody"))


def _instructions(play: Json) -> str:
    """Return a play as the text that instructions are; ``ScriptedAgent`` reads it back."""
    return play if isinstance(play, str) else json.dumps(play)


class ScriptedAgent:
    """The brain of every simulated agent: does what the plays say that it is shown.

    ``tools`` answers each call. What it remembers, it remembers across crashes: it stands for
    the model, which is outside.
    """

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._given: dict[str, dict[str, Any]] = {}

    def __call__(self, prompt: str, tools: Tools) -> str:
        """Perform every play in ``prompt``; return what the agent says."""
        said: list[str] = []
        for message in json.loads(prompt):
            play = _script_of(message["payload"])
            results: list[dict[str, Any]] = []
            for number, (tool, arguments) in enumerate(play.get("do", ()), 1):
                call_id = f"{message['message_id']} {number}"
                if call_id not in self._given:
                    around = _Around(message["message_id"], message["sender"], results, tools)
                    self._given[call_id] = self._meant(arguments, around)
                # A model that runs twice makes the same call under the same id.
                result = tools.call(call_id, tool, self._given[call_id])
                results.append(result)
                self._last.update({key: str(result[key]) for key in _IDS if key in result})
            said.append(f"{play.get('say', 'heard')} {len(results)}")
        return "; ".join(said)

    def _meant(self, arguments: Mapping[str, Any], around: _Around) -> dict[str, Any]:
        return {name: self._value(name, value, around) for name, value in arguments.items()}

    def _value(self, name: str, value: Any, around: _Around) -> Any:
        if name in ("to", "name"):
            return around.agent(value)
        if value == "$message":
            return around.message_id
        if name not in _IDS or not isinstance(value, str) or not value.startswith("$"):
            return value
        if value == "$":
            return self._last.get(name, "none yet")
        number = int(value[1:])
        given = around.results
        return given[number - 1].get(name, "none") if number <= len(given) else "none"


class _Around(NamedTuple):
    """What a call of a play can refer to."""

    message_id: str
    sender: str
    results: list[dict[str, Any]]
    tools: Tools

    def agent(self, value: Any) -> Any:
        """Return the id of the agent that ``value`` stands for, or ``value`` itself."""
        if value == "$sender":
            return self.sender
        if value != "$child":
            return value
        children = [
            result["agent_id"]
            for result in self.results
            if len(result) == 1 and "agent_id" in result
        ]
        if not children:
            listed: Any = self.tools.call(f"{len(self.results)} children", "list_children", {})
            children = [child["agent_id"] for child in listed.get("children", ())]
        return children[-1] if children else "nobody"


def _script_of(payload: Any) -> Mapping[str, Any]:
    """Return the play in a payload, or in instructions; anything else is no play."""
    if isinstance(payload, str) and payload.startswith('{"do"'):
        payload = json.loads(payload)
    return payload if isinstance(payload, dict) and "do" in payload else {}
