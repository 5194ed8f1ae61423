"""Scripts: the tool calls of a turn, as the payload of the message that causes the turn.

A payload ``{"do": [[tool, arguments], ...], "say": text}`` makes its recipient call these tools
in this order. The actions of a run therefore determine the work of all agents, and a message
that is presented again, after a crash has interrupted the turn, causes the same calls again.

In arguments, ``"$2"`` is the id in the result of the second call of the same script, and
``"$"`` the last id of its kind in the result of any call. As the name of an agent, ``"$child"``
is the child spawned last and ``"$sender"`` the sender of the message; ``"$message"`` is the id
of the message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from powercut.fuzz.action import Json
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from system.ports import Tools

NAMES: Final = ("Ada", "Bob", "Cleo", "Dan", "Eve")
"""The names of agents; so few that agents often ask for a name that is taken."""

MOST_CALLS: Final = 6
SECOND_NS: Final = 1_000_000_000

TOOLS: Final = (
    "send_message", "spawn_agent", "spawn_agent", "spawn_agent", "spawn_agent", "broadcast",
    "check_inbox", "gate", "subscribe", "remind_me", "gate", "permit_turn", "ungate",
    "complete", "poke", "set_agent_metadata", "cancel_reminder", "unsubscribe", "inspect_agent",
    "list_children",
)  # fmt: skip
DURABLE_TOOLS: Final = (
    "perform", "begin_task", "emit", "perform", "checkpoint", "remind_me", "schedule",
    "cancel_reminder", "unschedule", "send_message", "list_tasks", "spawn_agent", "complete",
)  # fmt: skip
"""The tools of agents with durable work; scripts in the messages that they send use ``TOOLS``."""

_IDS: Final = (
    "reminder_id", "subscription_id", "agent_id", "message_id", "task_id", "schedule_id",
)  # fmt: skip
_LEFT_OUT: Final = None
_PROVIDERS: Final = (_LEFT_OUT, _LEFT_OUT, _LEFT_OUT, "bare", "caching", "agentic")
_DELAYS: Final = (0, SECOND_NS, 60 * SECOND_NS)
_TRIGGER_KEYS: Final = (_LEFT_OUT, _LEFT_OUT, "immediate:a", "memory:m:1", "memory:m:2")
_SOURCES: Final = {"memory": "MEMORY", "immediate": "IMMEDIATE"}
_SPECS: Final = {"every": "1800", "cron": "*/20 * * * *"}


def propose_script(choices: Choices, depth: int = 0, tools: Sequence[str] = TOOLS) -> Json:
    """Choose a payload that calls ``tools``; the simplest is a plain text.

    Messages and children may get scripts of their own, nested at most twice (``depth``).
    """
    calls = choices.integer("calls", 0, MOST_CALLS - 2 * depth) if depth < 2 else 0
    if not calls:
        return text(choices)
    do: list[Json] = []
    tool = ""
    for _ in range(calls):
        tool = _tool(choices, tool, tools)
        do.append([tool, _arguments(choices, tool, depth)])
    return {"do": do, "say": choices.pick("say", ("", "done", "\N{FIRE} gemacht"))}


def _tool(choices: Choices, last: str, tools: Sequence[str]) -> str:
    """Choose any tool, or one that agents often use after ``last``."""
    if last in _AFTER and choices.integer("goes on", 0, 2):
        return choices.pick("next", _AFTER[last])
    return choices.pick("tool", tools)


_AFTER: Final[Mapping[str, tuple[str, ...]]] = {
    "spawn_agent": ("gate", "subscribe", "gate", "send_message", "subscribe"),
    "gate": ("permit_turn",),
    "permit_turn": ("permit_turn", "permit_turn", "send_message"),
    "remind_me": ("complete", "cancel_reminder"),
    "send_message": ("check_inbox", "subscribe"),
    "set_agent_metadata": ("complete",),
    "begin_task": ("checkpoint", "perform"),
    "schedule": ("unschedule", "perform"),
}


def _arguments(choices: Choices, tool: str, depth: int) -> dict[str, Json]:
    parameters = _PARAMETERS.get(tool, ("near",))
    chosen = {
        _NAMES.get(parameter, parameter): _ARGUMENTS[parameter](choices, depth)
        for parameter in parameters
    }
    if tool == "schedule":
        chosen["spec"] = _SPECS[str(chosen["kind"])]
    if tool == "emit" and chosen["key"] is not _LEFT_OUT:
        chosen["source"] = _SOURCES[str(chosen["key"]).partition(":")[0]]
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
    "action": lambda choices, _: choices.pick("action", ("mail", "pay")),
    "arguments": lambda choices, _: {"to": choices.pick("name", NAMES)},
    "task_id": lambda choices, _: choices.pick("task", (_LEFT_OUT, "$")),
    "of_task": lambda _choices, _depth: "$",
    "todos": lambda choices, _: [text(choices)],
    "event": lambda _choices, _depth: "step",
    "status": lambda choices, _: choices.pick("status", (_LEFT_OUT, _LEFT_OUT, "WAITING", "DONE")),
    "key_of": lambda choices, _: choices.pick("key of a trigger", _TRIGGER_KEYS),
    "kind": lambda choices, _: choices.pick("kind of schedule", ("every", "cron")),
    "catch_up": lambda choices, _: choices.pick("catch_up", ("latest", "all", "skip")),
    "schedule_id": lambda choices, _: choices.pick("id", ("$", "$1", "$2")),
}
_NAMES: Final = {"near": "name", "child": "name", "of_task": "task_id", "key_of": "key"}
"""The names of arguments of which there are several kinds."""
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
    "perform": ("action", "arguments", "task_id"),
    "begin_task": ("todos",),
    "checkpoint": ("of_task", "event", "status"),
    "list_tasks": (),
    "emit": ("payload", "delay_ns", "key_of"),
    "schedule": ("kind", "payload", "catch_up"),
    "unschedule": ("schedule_id",),
}
"""The arguments of each tool; all others take the name of an agent."""


_MARKED: Final = {
    "emit": "description", "schedule": "description", "begin_task": "data", "checkpoint": "data",
}  # fmt: skip
"""Tools with an argument that tells their calls apart."""


def _near(choices: Choices) -> str:
    return choices.pick("to", ("$child", "$sender", *NAMES, "$child", "USER", "nobody"))


def _instructions(script: Json) -> str:
    """Return a script as the text of instructions; ``ScriptedAgent`` decodes it."""
    return script if isinstance(script, str) else json.dumps(script)


class ScriptedAgent:
    """The brain of every simulated agent: executes the scripts in its prompt.

    It keeps the arguments of each call across crashes, as a model outside the machine does.
    """

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._arguments: dict[str, dict[str, Any]] = {}

    def __call__(self, prompt: str, tools: Tools) -> str:
        """Execute every script in ``prompt``; return the text of the answer."""
        texts: list[str] = []
        for message in json.loads(prompt):
            script = _script_of(_work_of(message))
            results: list[dict[str, Any]] = []
            for number, (tool, arguments) in enumerate(script.get("do", ()), 1):
                call_id = f"{message['message_id']} {number}"
                if call_id not in self._arguments:
                    context = _Context(message["message_id"], message["sender"], results, tools)
                    marked = {_MARKED[tool]: call_id} if tool in _MARKED else {}
                    self._arguments[call_id] = self._resolved(arguments, context) | marked
                # A model that runs twice makes the same call under the same id.
                result = tools.call(call_id, tool, self._arguments[call_id])
                results.append(result)
                self._last.update({key: str(result[key]) for key in _IDS if key in result})
            texts.append(f"{script.get('say', 'heard')} {len(results)}")
        return "; ".join(texts)

    def _resolved(self, arguments: Mapping[str, Any], context: _Context) -> dict[str, Any]:
        return {name: self._value(name, value, context) for name, value in arguments.items()}

    def _value(self, name: str, value: Any, context: _Context) -> Any:
        if name in ("to", "name"):
            return context.agent(value)
        if value == "$message":
            return context.message_id
        if name not in _IDS or not isinstance(value, str) or not value.startswith("$"):
            return value
        if value == "$":
            return self._last.get(name, "none yet")
        number = int(value[1:])
        results = context.results
        return results[number - 1].get(name, "none") if number <= len(results) else "none"


class _Context(NamedTuple):
    """The message of a script, and the results of its earlier calls."""

    message_id: str
    sender: str
    results: list[dict[str, Any]]
    tools: Tools

    def agent(self, value: Any) -> Any:
        """Return the id of the agent that ``value`` refers to, or ``value`` itself."""
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


def _work_of(message: Mapping[str, Any]) -> Any:
    """Return the payload that a message asks an agent to work on; RESUME asks for one step."""
    payload = message["payload"]
    if message["kind"] != "trigger":
        return payload
    work = payload["payload"]
    if payload["source"] == "RESUME":
        status = "DONE" if work["last_seq"] > 1 else "ACTIVE"
        step = {"task_id": work["task_id"], "event": "resumed", "status": status}
        return {"do": [["checkpoint", step]]}
    return work


def _script_of(payload: Any) -> Mapping[str, Any]:
    """Return the script in a payload or in instructions; an empty one for other payloads."""
    if isinstance(payload, str) and payload.startswith('{"do"'):
        payload = json.loads(payload)
    return payload if isinstance(payload, dict) and "do" in payload else {}
