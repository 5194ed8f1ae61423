"""A small world for the tests of the runtime: one root, one fake provider, one boot at a time."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import TypeVar

from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices
from sim.world import World
from system.agents import event
from system.agents.agent import Agent
from system.agents.view import AgentView
from system.ports import Host, Json, JsonObject, OpenMode, Provider
from system.runtime import Options, Runtime
from system.sessions.session import SessionRecord, SessionState, encode_record
from system.storage.durable_directory import make_durable_directory
from system.storage.line import Line, decode_line, encode_line
from system.storage.transfer import read_all, write_all
from tests.unit.system.agents.fake_provider import FakeProvider
from tests.unit.system.faulty_files import FaultyFiles

T = TypeVar("T")

SECOND_NS = 1_000_000_000
ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32
ADA, BOB, EVE = "a" * 32, "b" * 32, "e" * 32
NOW = "2023-11-14T22:13:20.000000Z"

Events = list[tuple[str, JsonObject]]

LIVING: list[Room] = []
"""The rooms of the test that runs; its coroutines must end with it."""


class Room:
    """``runtime`` is the one that runs; ``files`` can be made to fail."""

    def __init__(
        self, options: Options | None = None, providers: Mapping[str, Provider] | None = None
    ) -> None:
        self.world = World(simulated_host, PlainChoices())
        self.options = options or Options()
        self.provider = FakeProvider()
        self.providers: Mapping[str, Provider] = providers or {"scripted": self.provider}
        self.host: Host
        self.files: FaultyFiles
        self.runtime: Runtime
        self.power_on()
        LIVING.append(self)

    def power_on(self) -> None:
        """Start a lifetime, without a runtime."""
        host = self.world.boot()
        self.files = FaultyFiles(host.files)
        self.host = replace(host, files=self.files)

    def open(self, *, start: bool = True) -> Runtime:
        """Open the root in this lifetime."""
        self.runtime = self.run(Runtime.recover(self.host, self.providers, self.options))
        if start:
            self.start()
        return self.runtime

    def start(self) -> None:
        """Let turns begin."""

        async def begin() -> None:
            self.runtime.start()

        self.run(begin())

    def kill(self) -> None:
        """End the lifetime, and begin the next one."""
        self.world.kill()
        self.power_on()

    def reopen(self, *, start: bool = True) -> Runtime:
        """Kill the runtime and open the root again."""
        self.kill()
        return self.open(start=start)

    def run(self, work: Awaitable[T]) -> T:
        """Let everything run until ``work`` is done."""
        return self.world.loop.run_until_complete(work)

    def settle(self, seconds: int = 0) -> None:
        """Let everything run that is ready, or will be so many seconds from now."""
        self.world.loop.advance(seconds * SECOND_NS)

    def check_no_failures(self) -> None:
        """No background task has raised."""
        assert self.runtime.failures == []
        self.world.loop.raise_unhandled()

    # -- agents --------------------------------------------------------------------------

    def create(self, name: str = "Ada", **arguments: str) -> str:
        return self.run(self.runtime.create_agent(name, **arguments))

    def say(self, agent_id: str, payload: Json) -> str:
        """Send a message, and let everybody finish."""
        message_id = self.run(self.runtime.send(agent_id, payload))
        self.settle()
        return message_id

    def agent(self, agent_id: str) -> Agent:
        return self.runtime._orchestrator.agents[agent_id]

    def session(self, agent_id: str) -> str:
        return self.agent(agent_id).session_id

    def named(self, name: str) -> AgentView:
        return [agent for agent in self.runtime.view().agents if agent.name == name][-1]

    def to_user(self) -> list[tuple[str, Json]]:
        """Kind and payload of the messages to the operator."""
        return [(message.kind.value, message.payload) for message in self.runtime.view().user]

    def shown(self, turn: int = -1) -> list[tuple[str, Json]]:
        """Kind and payload of the messages that a turn presented."""
        prompt = json.loads(self.provider.prompts[turn])
        return [(message["kind"], message["payload"]) for message in prompt]

    # -- the disk ------------------------------------------------------------------------

    def lines(self, session_id: str) -> list[Line]:
        path = log_of(session_id)
        encoded = self.read(path).split(b"\n")[:-1]
        return [decode_line(line, session_id, path) for line in encoded]

    def events(self, session_id: str) -> list[str]:
        return [line.event for line in self.lines(session_id)]

    def state(self, session_id: str) -> str:
        """The state that the record of a session says."""
        return str(json.loads(self.read(record_of(session_id)))["state"])

    def read(self, path: str) -> bytes:
        file = self.host.files.open(path, OpenMode.READ)
        try:
            return read_all(file)
        finally:
            file.close()

    def write(self, path: str, data: bytes) -> None:
        """Make a file that holds ``data``, and the directories above it."""
        if "/" in path:
            make_durable_directory(self.host.files, path.rpartition("/")[0])
        if self.host.files.kind(path) is not None:
            self.host.files.unlink(path)
        file = self.host.files.open(path, OpenMode.CREATE)
        write_all(file, data, 0)
        file.close()

    def exists(self, path: str) -> bool:
        return self.host.files.kind(path) is not None

    def put_session(
        self,
        session_id: str,
        events: Events,
        state: SessionState | None = SessionState.SUSPENDED,
        blob: bytes = b"",
    ) -> None:
        """Write the files of a session from an earlier boot; no record if ``state`` is None."""
        if not self.exists("root.json"):
            self.run(_made(self.host))
        lines = [
            encode_line(Line(seq, NOW, session_id, name, data), "")
            for seq, (name, data) in enumerate(events, 1)
        ]
        self.write(log_of(session_id), b"".join(lines))
        if state is not None:
            record = SessionRecord(session_id, "scripted", "", state, blob)
            self.write(record_of(session_id), encode_record(record))


def opened(options: Options | None = None) -> tuple[Room, str]:
    """An open root with one agent, Ada."""
    room = Room(options)
    room.open()
    return room, room.create("Ada")


async def _made(host: Host) -> None:
    await (await Runtime.recover(host, {})).close()


def log_of(session_id: str) -> str:
    return f"agents/{session_id}/events.jsonl"


def record_of(session_id: str) -> str:
    return f"agents/{session_id}/session.json"


def created(agent_id: str, name: str, parent: str | None = None, identity: str = "") -> Events:
    """The first two lines of a session; ``parent`` is a session id."""
    return [
        (event.SESSION_CREATED, {
            "provider": "scripted", "model": "", "system_prompt": "", "identity": identity,
        }),
        (event.AGENT_CREATED, {
            "agent_id": agent_id, "name": name, "parent_session_id": parent,
            "instructions": "", "request_id": None,
        }),
    ]  # fmt: skip


def enqueued(
    message_id: str, sender: str, recipient: str, kind: str = "text", payload: Json = None
) -> tuple[str, JsonObject]:
    return event.MESSAGE_ENQUEUED, message(message_id, sender, recipient, kind, payload)


def message(
    message_id: str, sender: str, recipient: str, kind: str = "text", payload: Json = None
) -> JsonObject:
    return {
        "message_id": message_id, "sender": sender, "recipient": recipient, "kind": kind,
        "payload": payload, "timestamp": NOW, "reply_to": None, "metadata": {},
    }  # fmt: skip


def started(turn_id: str, *presented: str) -> tuple[str, JsonObject]:
    shown: list[Json] = list(presented)
    return event.TURN_START, {"turn_id": turn_id, "prompt": "[]", "presented": shown}


def completed(turn_id: str, *presented: str, **more: Json) -> tuple[str, JsonObject]:
    shown: list[Json] = list(presented)
    return event.TURN_COMPLETE, {
        "turn_id": turn_id, "trigger_id": None, "presented": shown, "response": "yes",
        "provider": {"name": "scripted", "identity": ""}, "outbox": [], "spawned": [],
        "terminate": False, **more,
    }  # fmt: skip


def spawned(agent_id: str, session_id: str, name: str, bootstrap_id: str = "boot") -> JsonObject:
    return {
        "agent_id": agent_id, "session_id": session_id, "name": name, "instructions": "work",
        "provider": "scripted", "model": "", "bootstrap_id": bootstrap_id,
    }  # fmt: skip
