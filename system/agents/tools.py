"""The tools of an agent during one turn. They answer at once; effects wait for the commit.

``TOOLS`` registers them by name. The answer to a refused call is ``{"error": sentence}``. A call
that a provider repeats under the same id is made once.
"""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Final, TypeAlias

from system.agents.agent import Agent
from system.agents.durable_tools import LONGEST_DELAY_NS, DurableTools
from system.agents.message import (
    USER,
    Message,
    MessageKind,
    check_payload,
    detached,
    kept_payload,
    shown_message,
)
from system.agents.orchestrator import Orchestrator
from system.agents.outbox import Control, Spawn
from system.agents.tool_arguments import Refused, delay_of, text_of
from system.agents.turn_complete import Reminder, Subscription, TurnDraft
from system.durable.emitter import checked_time
from system.durable.seconds import seconds_of
from system.errors import NotPlainJson, RuntimeRefused
from system.foreign import shown
from system.ports import Json, JsonObject

LONGEST_NAME: Final = 200


class TurnTools:
    """Implements ``system.ports.Tools`` for the turn ``turn_id`` of ``agent``.

    ``draft`` collects the effects. Calls are refused when the answer ``is_over``.
    """

    def __init__(
        self, orchestrator: Orchestrator, agent: Agent, turn_id: str, presented: Sequence[str]
    ) -> None:
        self.draft = TurnDraft(list(presented))
        self._turn_id = turn_id
        self._durable: DurableTools | None = None
        self.is_over = False
        self._orchestrator = orchestrator
        self._agent = agent
        self._tree = orchestrator.tree
        self._results: dict[str, JsonObject] = {}
        self._performing: dict[str, Lock] = {}

    @property
    def durable(self) -> DurableTools:
        """The tools whose effects go to ``state.db``; few turns call any of them."""
        if self._durable is None:
            self._durable = DurableTools(self._orchestrator, self._agent, self._turn_id, self.draft)
        return self._durable

    async def perform(self, call_id: str, arguments: JsonObject) -> JsonObject:
        """Call the tool ``perform``; an action that may be repeated is performed at once."""
        if not _is_call_id(call_id):
            return {"error": f"call_id={shown(call_id)} is not a text"}
        async with self._performing.setdefault(call_id, Lock()):
            if self.is_over:
                return {"error": _OVER}
            if call_id not in self._results:
                self._results[call_id] = await self._performed(arguments)
            return deepcopy(self._results[call_id])

    async def _performed(self, arguments: Json) -> JsonObject:
        refusal = self._refusal("perform", arguments)
        if refusal is not None or not isinstance(arguments, dict):
            return {"error": refusal}
        try:
            return await self.durable.perform_now(arguments)
        except _REFUSALS as refused:
            return {"error": str(refused)}

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Return the result of a tool; the same one for the same ``call_id``."""
        if self.is_over:
            return {"error": _OVER}
        if not _is_call_id(call_id):
            return {"error": f"call_id={shown(call_id)} is not a text"}
        if call_id not in self._results:
            self._results[call_id] = self._called(name, arguments)
        return deepcopy(self._results[call_id])

    def give_up(self) -> None:
        """Drop the effects of a failed turn, and release the names that it had reserved."""
        for spawn in self.draft.spawned.values():
            self._tree.release(spawn.name)

    def _called(self, name: str, arguments: Json) -> JsonObject:
        refusal = self._refusal(name, arguments)
        if refusal is not None or not isinstance(arguments, dict):
            return {"error": refusal}
        try:
            return TOOLS[name](self, arguments)
        except _REFUSALS as refused:
            return {"error": str(refused)}

    def _refusal(self, name: str, arguments: Json) -> str | None:
        """Return why a call is refused before its arguments are read, or None."""
        if not isinstance(arguments, dict):
            return f"the arguments of a tool are an object, not {shown(arguments)}"
        if type(name) is not str or name not in TOOLS:
            return f"there is no tool {shown(name)}; known are {', '.join(TOOLS)}"
        if self.draft.completion is not None and name != "check_inbox":
            return "this turn has completed the agent; nothing may follow"
        return None

    # -- messages ------------------------------------------------------------------------

    def send_message(self, arguments: JsonObject) -> JsonObject:
        reply_to = arguments.get("reply_to")
        if reply_to is not None:
            if not isinstance(reply_to, str):
                raise Refused(f"reply_to={shown(reply_to)} is not a message id")
            check_payload(reply_to)
        return self._sent(self._addressed(arguments, "to"), MessageKind.TEXT, arguments, reply_to)

    def poke(self, arguments: JsonObject) -> JsonObject:
        return self._sent(self._addressed(arguments, "to"), MessageKind.POKE, {})

    def broadcast(self, arguments: JsonObject) -> JsonObject:
        check_payload(arguments.get("payload"))
        me = self._agent.agent_id
        near = [
            *self._tree.nodes[me].children, *self.draft.spawned, *self._tree.siblings(me),
        ]  # fmt: skip
        sent: list[Json] = [
            self._sent(to, MessageKind.TEXT, arguments)["message_id"] for to in near
        ]
        return {"message_ids": sent}

    def check_inbox(self, _arguments: JsonObject) -> JsonObject:
        presented = self.draft.presented
        new = [item for key, item in self._agent.history.pending.items() if key not in presented]
        presented += [message.message_id for message in new]
        return {"messages": [shown_message(each, self._tree.names) for each in new]}

    def _sent(
        self, to: str, kind: MessageKind, arguments: JsonObject, reply_to: str | None = None
    ) -> JsonObject:
        message = self._message(to, kind, arguments.get("payload"), reply_to)
        self.draft.outbox.append(message)
        return {"message_id": message.message_id}

    def _message(
        self, to: str, kind: MessageKind, payload: Json, reply_to: str | None = None
    ) -> Message:
        host, own = self._orchestrator.host, self._agent.agent_id
        return Message.checked(host.clock, host.ids.uuid_hex(), own, to, kind, payload, reply_to)

    # -- the tree ------------------------------------------------------------------------

    def spawn_agent(self, arguments: JsonObject) -> JsonObject:
        history, ids = self._agent.history, self._orchestrator.host.ids
        assert history.session is not None
        name, instructions = text_of(arguments, "name"), text_of(arguments, "instructions", "")
        provider = text_of(arguments, "provider", history.session.provider)
        model = text_of(arguments, "model", history.session.model)
        if not 0 < len(name) <= LONGEST_NAME or name == USER:
            raise Refused(f"name={name[:LONGEST_NAME]!r} is not a name for an agent")
        check_payload([name, instructions, model])
        if provider not in self._orchestrator.provider_names:
            raise Refused(f"there is no provider {shown(provider)}")
        self._tree.reserve(name)
        spawn = Spawn(
            ids.uuid_hex(), ids.uuid_hex(), name, instructions, provider, model, ids.uuid_hex()
        )
        self.draft.spawned[spawn.agent_id] = spawn
        return {"agent_id": spawn.agent_id}

    def list_children(self, _arguments: JsonObject) -> JsonObject:
        return {"children": self._children(self._agent.agent_id)}

    def _children(self, agent_id: str) -> list[Json]:
        children = self._tree.nodes[agent_id].children
        return [{"agent_id": child, "name": self._tree.names[child]} for child in children]

    def inspect_agent(self, arguments: JsonObject) -> JsonObject:
        agent_id = self._addressed(arguments, "name", oneself=True)
        if agent_id == USER or agent_id in self.draft.spawned:
            raise Refused("it cannot be inspected")
        node, history = self._tree.nodes[agent_id], self._orchestrator.agents[agent_id].history
        return {
            "agent_id": agent_id,
            "name": node.name,
            "parent": node.parent_id,
            "children": self._children(agent_id),
            "pending": len(history.pending),
            "turns": history.turn_count,
            "gated": history.gated,
            "metadata": detached(history.metadata),
        }

    def set_agent_metadata(self, arguments: JsonObject) -> JsonObject:
        value = kept_payload(arguments.get("value"))
        key = text_of(arguments, "key")
        check_payload(key)
        self.draft.metadata[key] = value
        return {}

    def complete(self, arguments: JsonObject) -> JsonObject:
        node = self._tree.nodes[self._agent.agent_id]
        children = [
            *self._tree.dependants(node.agent_id),
            *(spawn.name for spawn in self.draft.spawned.values()),
        ]
        if children:
            raise Refused(f"there are living children: {', '.join(children)}")
        data = self._agent.history.agent
        if data is not None and data.parent_session_id in self._orchestrator.unserved:
            raise Refused("the parent of this agent cannot be read, and would not get its result")
        to = node.parent_id if node.parent_id is not None else USER
        self.draft.completion = self._message(to, MessageKind.RESPONSE, arguments.get("result"))
        return {}

    # -- waiting for something -----------------------------------------------------------

    def remind_me(self, arguments: JsonObject) -> JsonObject:
        delay_ns = delay_of(arguments, LONGEST_DELAY_NS)
        payload = kept_payload(arguments.get("payload"))
        orchestrator = self._orchestrator
        reminder_id = orchestrator.host.ids.uuid_hex()
        due_ns = orchestrator.durable.clock.now_ns() + delay_ns
        checked_time(seconds_of(due_ns))
        self.draft.reminders.append(Reminder(reminder_id, due_ns, payload))
        return {"reminder_id": reminder_id}

    def cancel_reminder(self, arguments: JsonObject) -> JsonObject:
        reminder_id = text_of(arguments, "reminder_id")
        own = [added.reminder_id for added in self.draft.reminders]
        active = [*self._agent.history.reminders, *own]
        over = [*self.draft.cancelled, self.draft.trigger_id]
        if reminder_id not in active or reminder_id in over:
            raise Refused(f"there is no reminder {shown(reminder_id)}")
        self.draft.cancelled.append(reminder_id)
        return {}

    def subscribe(self, arguments: JsonObject) -> JsonObject:
        target = self._addressed(arguments, "name")
        if target == USER:
            raise Refused("USER never ends")
        subscription_id = self._orchestrator.host.ids.uuid_hex()
        self.draft.subscribed.append(Subscription(subscription_id, target))
        return {"subscription_id": subscription_id}

    def unsubscribe(self, arguments: JsonObject) -> JsonObject:
        subscription_id = text_of(arguments, "subscription_id")
        own = [added.subscription_id for added in self.draft.subscribed]
        active = [*self._agent.history.subscriptions, *own]
        if subscription_id not in active or subscription_id in self.draft.unsubscribed:
            raise Refused(f"there is no subscription {shown(subscription_id)}")
        self.draft.unsubscribed.append(subscription_id)
        return {}

    # -- children's turns ----------------------------------------------------------------

    def gate(self, arguments: JsonObject) -> JsonObject:
        return self._controlled(arguments, "gate")

    def ungate(self, arguments: JsonObject) -> JsonObject:
        return self._controlled(arguments, "ungate")

    def permit_turn(self, arguments: JsonObject) -> JsonObject:
        return self._controlled(arguments, "permit_turn")

    def _controlled(self, arguments: JsonObject, op: str) -> JsonObject:
        target = self._addressed(arguments, "name")
        children = self._tree.nodes[self._agent.agent_id].children
        if target not in children and target not in self.draft.spawned:
            raise Refused(f"{shown(arguments.get('name'))} is not a child of this agent")
        control_id = self._orchestrator.host.ids.uuid_hex()
        self.draft.controls.append(Control(control_id, target, op))
        return {}

    # -- arguments -----------------------------------------------------------------------

    def _addressed(self, arguments: JsonObject, key: str, *, oneself: bool = False) -> str:
        to, me = arguments.get(key), self._agent.agent_id
        if not isinstance(to, str):
            raise Refused(f"{key}={shown(to)} is not a text")
        for spawn in self.draft.spawned.values():
            if to in (spawn.name, spawn.agent_id):
                return spawn.agent_id
        if oneself and to in (me, self._tree.names[me]):
            return me
        target = self._tree.address(me, to)
        if target is None:
            raise Refused(f"{shown(to)} is no living parent, child or sibling of this agent")
        return target


def _is_call_id(value: object) -> bool:
    """Whether a result is found again by a value; some providers number their calls."""
    return isinstance(value, str | int)


_OVER: Final = "the turn is over; nothing may follow"
_REFUSALS: Final = (Refused, NotPlainJson, RuntimeRefused)

Tool: TypeAlias = Callable[[TurnTools, JsonObject], JsonObject]

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {
        "send_message": TurnTools.send_message,
        "broadcast": TurnTools.broadcast,
        "poke": TurnTools.poke,
        "check_inbox": TurnTools.check_inbox,
        "spawn_agent": TurnTools.spawn_agent,
        "list_children": TurnTools.list_children,
        "inspect_agent": TurnTools.inspect_agent,
        "set_agent_metadata": TurnTools.set_agent_metadata,
        "complete": TurnTools.complete,
        "remind_me": TurnTools.remind_me,
        "cancel_reminder": TurnTools.cancel_reminder,
        "subscribe": TurnTools.subscribe,
        "unsubscribe": TurnTools.unsubscribe,
        "gate": TurnTools.gate,
        "ungate": TurnTools.ungate,
        "permit_turn": TurnTools.permit_turn,
        "perform": lambda tools, arguments: tools.durable.perform(arguments),
        "begin_task": lambda tools, arguments: tools.durable.begin_task(arguments),
        "checkpoint": lambda tools, arguments: tools.durable.checkpoint(arguments),
        "list_tasks": lambda tools, arguments: tools.durable.list_tasks(arguments),
        "emit": lambda tools, arguments: tools.durable.emit(arguments),
        "schedule": lambda tools, arguments: tools.durable.schedule(arguments),
        "unschedule": lambda tools, arguments: tools.durable.unschedule(arguments),
    }
)
"""In the order of the table in ``docs/runtime.md``."""
