"""A root written by hand: its lines are sealed independently of the runtime.

A test edits, adds or drops lines, or changes the requests and calls of the providers.
"""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns

TIME = "2026-03-01T12:00:00.000000Z"
NOW_NS = 1_772_366_400_000_000_000

Data = dict[str, Any]
Break = Callable[["Story"], object]


def hexed(name: str) -> str:
    """Return an id of 32 hex digits that contains the name in ASCII."""
    return name.encode().hex().ljust(32, "0")[:32]


def sealed(value: Data) -> bytes:
    """Return canonical JSON with the crc of it as its last member."""
    body = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return body[:-1] + f',"crc":"{crc32(body):08x}"}}'.encode()


def message(message_id: str, sender: str, to: str, kind: str, payload: object) -> Data:
    return {
        "message_id": message_id,
        "sender": sender,
        "recipient": to,
        "kind": kind,
        "payload": payload,
        "timestamp": TIME,
        "reply_to": None,
        "metadata": {},
    }


@dataclass
class Entry:
    """One line before it is sealed."""

    event: str
    data: Data
    durable: int | None = None


@dataclass
class Asked:
    """The providers' side of one turn; ``calls`` are name, arguments, result.

    ``session`` is the session of the conversation, ``superset`` allows a longer history, and
    ``at_ns`` is the wall clock of the calls.
    """

    prompt: str
    history: list[tuple[str, str]]
    calls: list[tuple[str, Data, Data]]
    answer: str | None
    session: str = ""
    superset: bool = False
    at_ns: int | None = None


@dataclass
class Story:
    logs: dict[str, list[Entry]] = field(default_factory=dict)
    records: dict[str, Data] = field(default_factory=dict)
    others: dict[str, bytes] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    operator_calls: list[Callable[[ShadowRuntime], object]] = field(default_factory=list)

    def add(self, owner: str, event: str, **data: Any) -> Data:
        """Append a line; return its data."""
        self.logs.setdefault(owner, []).append(Entry(event, deepcopy(data)))
        return self.logs[owner][-1].data

    def at(self, owner: str, event: str, number: int = 0) -> Data:
        """Return the data of the n-th line of this event."""
        return [e for e in self.logs[owner] if e.event == event][number].data

    def drop(self, owner: str, event: str, number: int = 0) -> Entry:
        """Remove the n-th line of this event."""
        entry = [e for e in self.logs[owner] if e.event == event][number]
        self.logs[owner] = [e for e in self.logs[owner] if e is not entry]
        return entry

    def move(self, owner: str, event: str, number: int, to: int) -> Any:
        """Move the n-th line of this event to another node."""
        entry = self.drop(owner, event, number)
        self.logs[owner].insert(to, entry)

    def create(self, name: str, parent: str | None = None, request: str | None = None) -> Any:
        self.add(
            name, "session.created",
            provider="scripted", model="m", system_prompt=f"be {name}", identity="",
        )  # fmt: skip
        self.add(
            name, "agent.created", agent_id=hexed(f"a-{name}"), name=name,
            parent_session_id=parent and hexed(parent), instructions=f"be {name}",
            request_id=request,
        )  # fmt: skip
        self.records[name] = {"session_id": hexed(name), "state": "SUSPENDED"}

    def prompt_of(self, name: str, keys: list[str]) -> list[Data]:
        """Return messages of a log in the form of a prompt."""
        shown = []
        for key in keys:
            found = next(
                e.data for e in self.logs[name]
                if e.event == "message.enqueued" and e.data["message_id"] == key
            )  # fmt: skip
            names = {hexed(f"a-{n}"): n for n in self.logs}
            shown.append(
                {k: found[k] for k in ("message_id", "sender", "kind", "payload", "reply_to")}
                | {"sender_name": names.get(found["sender"], found["sender"])}
            )
        return shown

    def start(self, name: str, turn_id: str, *keys: str) -> Any:
        prompt = json.dumps(self.prompt_of(name, list(keys)))
        self.add(name, "turn.start", turn_id=turn_id, prompt=prompt, presented=list(keys))

    def turn(
        self, name: str, turn_id: str, *keys: str, calls: list[Any] | None = None, **data: Any
    ) -> Any:
        """Add a committed turn; ``data`` are members of its line."""
        history = [
            (next(s["prompt"] for s in self._all(name, "turn.start") if s["turn_id"] == t), r)
            for t, r in ((c["turn_id"], c["response"]) for c in self._all(name, "turn.complete"))
        ]
        self.start(name, turn_id, *keys)
        prompt = self.logs[name][-1].data["prompt"]
        self.asked[turn_id] = Asked(prompt, history, calls or [], f"answer of {turn_id}")
        plain: Data = {"outbox": [], "spawned": [], "terminate": False}
        self.add(
            name, "turn.complete", turn_id=turn_id, trigger_id=None, presented=list(keys),
            response=f"answer of {turn_id}", provider={"name": "scripted", "identity": ""},
            **(plain | data),
        )  # fmt: skip
        for key in keys:
            self.add(name, "message.delivered", message_id=key)

    def _all(self, name: str, event: str) -> list[Data]:
        return [e.data for e in self.logs[name] if e.event == event]

    def send(self, message_id: str, name: str, payload: object) -> Any:
        """Add a message of the operator whose call was acknowledged."""
        agent_id = hexed(f"a-{name}")
        self.add(name, "message.enqueued", **message(message_id, "USER", agent_id, "text", payload))
        self.operator_calls.append(lambda s: s.operator.sends.begin(message_id, agent_id, payload))
        self.operator_calls.append(lambda s: s.operator.sends.acknowledge(message_id))

    def root(self, name: str) -> Any:
        """Add a root agent whose creation was acknowledged."""
        self.create(name, request=f"r-{name}")
        operator = (f"r-{name}", name, f"be {name}", "scripted", "m")
        self.operator_calls.append(lambda s: s.operator.creates.begin(*operator))
        self.operator_calls.append(
            lambda s: s.operator.acknowledge_create(f"r-{name}", hexed(f"a-{name}"))
        )

    def terminate(self, name: str, *returned: str) -> Any:
        """Add a termination by the operator that was acknowledged."""
        agent_id = hexed(f"a-{name}")
        self.add(
            name, "agent.terminated", agent_id=agent_id, reason="operator", returned=list(returned)
        )
        self.records[name]["state"] = "TERMINATED"
        self.operator_calls.append(lambda s: s.operator.terminations.begin(agent_id))
        self.operator_calls.append(lambda s: s.operator.terminations.acknowledge(agent_id))

    def files(self) -> dict[str, bytes]:
        """Return the files of the root."""
        files = {"root.json": sealed({"format": 1, "v": 1}) + b"\n", "runtime.lock": b"1"}
        for name, entries in self.logs.items():
            path = "user" if name == "user" else f"agents/{hexed(name)}"
            lines = []
            for seq, entry in enumerate(entries, 1):
                members = {
                    "v": 1,
                    "seq": seq,
                    "ts": TIME,
                    "session_id": name if name == "user" else hexed(name),
                    "event": entry.event,
                    "data": entry.data,
                }
                if entry.durable is not None:
                    members["durable"] = entry.durable
                lines.append(sealed(members) + b"\n")
            files[f"{path}/events.jsonl"] = b"".join(lines)
        for name, record in self.records.items():
            files[f"agents/{hexed(name)}/session.json"] = sealed(record) + b"\n"
        return files | self.others

    def shadow(self) -> ShadowRuntime:
        """Return a shadow with the calls of the operator and of the providers."""
        turns = ShadowTurns()
        for turn_id, asked in self.asked.items():
            turns.record_request(
                turn_id, asked.prompt, asked.history, asked.session, superset=asked.superset
            )
            for number, (name, arguments, result) in enumerate(asked.calls):
                turns.record_call(turn_id, str(number), name, arguments, result, asked.at_ns)
            if asked.answer is not None:
                turns.record_answer(turn_id, asked.answer)
        shadow = ShadowRuntime(turns)
        for record in self.operator_calls:
            record(shadow)
        return shadow

    def snapshot(self) -> RootSnapshot:
        return RootSnapshot.of_files(self.files())

    def settle(self) -> ShadowRuntime:
        """Check the story as the first snapshot after a recovery."""
        shadow = self.shadow()
        shadow.settle(shadow.read(self.files()), NOW_NS)
        return shadow
