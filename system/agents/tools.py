"""The tools of an agent during one turn. They answer at once; effects wait for the commit.

A call that cannot be done is answered with ``{"error": sentence}``. A call that comes twice
under one id, because the provider repeated itself, is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final, Protocol

from system.agents.agent import Agent
from system.agents.effects import Effects, Spawn
from system.agents.message import USER, Message, MessageKind, check_payload, shown_message
from system.agents.tree import Tree
from system.errors import NameTaken, NotPlainJson, PayloadTooLarge
from system.ports import Host, Json, JsonObject
from system.storage.line import timestamp

LONGEST_NAME: Final = 200
LONGEST_DELAY_NS: Final = 100 * 365 * 86_400 * 10**9
"""A hundred years: more than any timer of ours can wait, and than anybody will."""


class Surroundings(Protocol):
    """What the tools see of the other agents."""

    host: Host
    tree: Tree
    agents: dict[str, Agent]
    unserved: set[str]

    @property
    def provider_names(self) -> Sequence[str]: ...


class Refused(Exception):
    """The tool answers with this sentence, and nothing happens."""


class TurnTools:
    """Implements ``system.ports.Tools`` for one turn of ``agent``."""

    def __init__(self, around: Surroundings, agent: Agent, presented: Sequence[str]) -> None:
        self.effects = Effects(list(presented))
        self._around = around
        self._agent = agent
        self._tree = around.tree
        self._results: dict[str, JsonObject] = {}
        self._over = False

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Return the result of a tool; the same one for the same ``call_id``."""
        if self._over:
            return {"error": "the turn is over; nothing may follow"}
        if call_id not in self._results:
            self._results[call_id] = self._called(name, arguments)
        return self._results[call_id]

    def finish(self) -> None:
        """Refuse every further call: the answer is there, or never will be."""
        self._over = True

    def give_up(self) -> None:
        """Let nothing come of the turn: give back the names that it had promised."""
        for spawn in self.effects.spawned.values():
            self._tree.release(spawn.name)

    def _called(self, name: str, arguments: Json) -> JsonObject:
        tool = self._TOOLS.get(name)
        if not isinstance(arguments, dict):
            return {"error": f"the arguments of a tool are an object, not {arguments!r}"}
        if tool is None:
            return {"error": f"there is no tool {name!r}; known are {', '.join(self._TOOLS)}"}
        if self.effects.completion is not None and name != "check_inbox":
            return {"error": "this turn has completed the agent; nothing may follow"}
        try:
            return tool(self, arguments)
        except (Refused, NameTaken, NotPlainJson, PayloadTooLarge) as refused:
            return {"error": str(refused)}

    # -- messages ------------------------------------------------------------------------

    def _send_message(self, arguments: JsonObject) -> JsonObject:
        reply_to = arguments.get("reply_to")
        if not (reply_to is None or isinstance(reply_to, str)):
            raise Refused(f"reply_to={reply_to!r} is not a message id")
        check_payload(reply_to)
        return self._sent(self._addressed(arguments, "to"), MessageKind.TEXT, arguments, reply_to)

    def _poke(self, arguments: JsonObject) -> JsonObject:
        return self._sent(self._addressed(arguments, "to"), MessageKind.POKE, {})

    def _broadcast(self, arguments: JsonObject) -> JsonObject:
        check_payload(arguments.get("payload"))
        me = self._agent.agent_id
        near = [
            *self._tree.nodes[me].children, *self.effects.spawned, *self._tree.siblings(me),
        ]  # fmt: skip
        sent: list[Json] = [
            self._sent(to, MessageKind.TEXT, arguments)["message_id"] for to in near
        ]
        return {"message_ids": sent}

    def _check_inbox(self, _arguments: JsonObject) -> JsonObject:
        presented = self.effects.presented
        new = [item for key, item in self._agent.history.pending.items() if key not in presented]
        presented += [message.message_id for message in new]
        return {"messages": [shown_message(message, self._tree.names) for message in new]}

    def _sent(
        self, to: str, kind: MessageKind, arguments: JsonObject, reply_to: str | None = None
    ) -> JsonObject:
        payload = arguments.get("payload")
        check_payload(payload)
        message = self._message(to, kind, payload, reply_to)
        self.effects.outbox.append(message)
        return {"message_id": message.message_id}

    def _message(
        self, to: str, kind: MessageKind, payload: Json, reply_to: str | None = None
    ) -> Message:
        host = self._around.host
        return Message(
            host.ids.uuid_hex(), self._agent.agent_id, to, kind, payload,
            timestamp(host.clock.wall_ns()), reply_to,
        )  # fmt: skip

    # -- the tree ------------------------------------------------------------------------

    def _spawn_agent(self, arguments: JsonObject) -> JsonObject:
        history, ids = self._agent.history, self._around.host.ids
        assert history.session is not None
        name, instructions = _text(arguments, "name"), _text(arguments, "instructions", "")
        provider = _text(arguments, "provider", history.session.provider)
        model = _text(arguments, "model", history.session.model)
        if not 0 < len(name) <= LONGEST_NAME or name == USER:
            raise Refused(f"name={name[:LONGEST_NAME]!r} is no name for an agent")
        check_payload([name, instructions, model])
        if provider not in self._around.provider_names:
            raise Refused(f"there is no provider {provider!r}")
        self._tree.reserve(name)
        spawn = Spawn(
            ids.uuid_hex(), ids.uuid_hex(), name, instructions, provider, model, ids.uuid_hex()
        )
        self.effects.spawned[spawn.agent_id] = spawn
        return {"agent_id": spawn.agent_id}

    def _list_children(self, _arguments: JsonObject) -> JsonObject:
        return {"children": self._children(self._agent.agent_id)}

    def _children(self, agent_id: str) -> list[Json]:
        children = self._tree.nodes[agent_id].children
        return [{"agent_id": child, "name": self._tree.names[child]} for child in children]

    def _inspect_agent(self, arguments: JsonObject) -> JsonObject:
        agent_id = self._addressed(arguments, "name", oneself=True)
        if agent_id == USER or agent_id in self.effects.spawned:
            raise Refused("it cannot be inspected")
        node, history = self._tree.nodes[agent_id], self._around.agents[agent_id].history
        return {
            "agent_id": agent_id,
            "name": node.name,
            "parent": node.parent_id,
            "children": self._children(agent_id),
            "pending": len(history.pending),
            "turns": len(history.turns),
            "gated": history.gated,
            "metadata": dict(history.metadata),
        }

    def _set_agent_metadata(self, arguments: JsonObject) -> JsonObject:
        value = arguments.get("value")
        check_payload(value)
        key = _text(arguments, "key")
        check_payload(key)
        self.effects.metadata[key] = value
        return {}

    def _complete(self, arguments: JsonObject) -> JsonObject:
        node = self._tree.nodes[self._agent.agent_id]
        children = [
            *self._tree.dependants(node.agent_id),
            *(spawn.name for spawn in self.effects.spawned.values()),
        ]
        if children:
            raise Refused(f"there are living children: {', '.join(children)}")
        facts = self._agent.history.agent
        if facts is not None and facts.parent_session_id in self._around.unserved:
            raise Refused("the parent of this agent cannot be read, and would not be told")
        result = arguments.get("result")
        check_payload(result)
        to = node.parent_id if node.parent_id is not None else USER
        self.effects.completion = self._message(to, MessageKind.RESPONSE, result)
        return {}

    # -- waiting for something -----------------------------------------------------------

    def _remind_me(self, arguments: JsonObject) -> JsonObject:
        delay_ns, payload = arguments.get("delay_ns"), arguments.get("payload")
        if not isinstance(delay_ns, int) or isinstance(delay_ns, bool) or delay_ns < 0:
            raise Refused(f"delay_ns={delay_ns!r} is not a number of nanoseconds")
        if delay_ns > LONGEST_DELAY_NS:
            raise Refused(f"delay_ns is over the limit of {LONGEST_DELAY_NS}")
        check_payload(payload)
        host = self._around.host
        reminder_id = host.ids.uuid_hex()
        due_ns = host.clock.wall_ns() + delay_ns
        self.effects.reminders.append(
            {"reminder_id": reminder_id, "due_ns": due_ns, "payload": payload}
        )
        return {"reminder_id": reminder_id}

    def _cancel_reminder(self, arguments: JsonObject) -> JsonObject:
        reminder_id = _text(arguments, "reminder_id")
        own = [str(added["reminder_id"]) for added in self.effects.reminders]
        active = [*self._agent.history.reminders, *own]
        if reminder_id not in active or reminder_id in self.effects.cancelled:
            raise Refused(f"there is no reminder {reminder_id!r}")
        self.effects.cancelled.append(reminder_id)
        return {}

    def _subscribe(self, arguments: JsonObject) -> JsonObject:
        target = self._addressed(arguments, "name")
        if target == USER:
            raise Refused("USER never ends")
        subscription_id = self._around.host.ids.uuid_hex()
        self.effects.subscribed.append({"subscription_id": subscription_id, "target": target})
        return {"subscription_id": subscription_id}

    def _unsubscribe(self, arguments: JsonObject) -> JsonObject:
        subscription_id = _text(arguments, "subscription_id")
        own = [str(added["subscription_id"]) for added in self.effects.subscribed]
        active = [*self._agent.history.subscriptions, *own]
        if subscription_id not in active or subscription_id in self.effects.unsubscribed:
            raise Refused(f"there is no subscription {subscription_id!r}")
        self.effects.unsubscribed.append(subscription_id)
        return {}

    # -- children's turns ----------------------------------------------------------------

    def _gate(self, arguments: JsonObject) -> JsonObject:
        return self._controlled(arguments, "gate")

    def _ungate(self, arguments: JsonObject) -> JsonObject:
        return self._controlled(arguments, "ungate")

    def _permit_turn(self, arguments: JsonObject) -> JsonObject:
        return self._controlled(arguments, "permit_turn")

    def _controlled(self, arguments: JsonObject, op: str) -> JsonObject:
        target = self._addressed(arguments, "name")
        children = self._tree.nodes[self._agent.agent_id].children
        if target not in children and target not in self.effects.spawned:
            raise Refused(f"{arguments.get('name')!r} is not a child of this agent")
        control_id = self._around.host.ids.uuid_hex()
        self.effects.controls.append({"control_id": control_id, "target": target, "op": op})
        return {}

    # -- arguments -----------------------------------------------------------------------

    def _addressed(self, arguments: JsonObject, key: str, *, oneself: bool = False) -> str:
        to, me = _text(arguments, key), self._agent.agent_id
        for spawn in self.effects.spawned.values():
            if to in (spawn.name, spawn.agent_id):
                return spawn.agent_id
        if oneself and to in (me, self._tree.names[me]):
            return me
        target = self._tree.address(me, to)
        if target is None:
            raise Refused(f"{to!r} is no living parent, child or sibling of this agent")
        return target

    # The order is that of the table in docs/runtime.md.
    _TOOLS: ClassVar[Mapping[str, Callable[[TurnTools, JsonObject], JsonObject]]] = (
        MappingProxyType(
            {
                "send_message": _send_message,
                "broadcast": _broadcast,
                "poke": _poke,
                "check_inbox": _check_inbox,
                "spawn_agent": _spawn_agent,
                "list_children": _list_children,
                "inspect_agent": _inspect_agent,
                "set_agent_metadata": _set_agent_metadata,
                "complete": _complete,
                "remind_me": _remind_me,
                "cancel_reminder": _cancel_reminder,
                "subscribe": _subscribe,
                "unsubscribe": _unsubscribe,
                "gate": _gate,
                "ungate": _ungate,
                "permit_turn": _permit_turn,
            }
        )
    )


def _text(arguments: JsonObject, key: str, default: str | None = None) -> str:
    value = arguments.get(key, default)
    if not isinstance(value, str):
        raise Refused(f"{key}={value!r} is not a text")
    return value
