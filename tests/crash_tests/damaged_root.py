"""A damaged root on which every pass of recovery has work to do; all of its files are durable.

Ada has spawned Dan, Eve and Finn. A later turn has spawned Bob, of which no file exists, and
Cleo, of which only the record exists; her last turn was interrupted. Eve and Finn have
completed, and their results were not dispatched. The record of Dan is missing. The log of Gus
is damaged in the middle, and the log of Jan has a gap. Hal, Ida and Kai have pending entries:
one to replay, one stale, one torn. One session has no agent. The last two turns of Ada were
recorded, and the log of the recording has their executions without a response.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from crash_tests.rig.host import simulated_host
from crash_tests.targets.recording_values import following, payload
from oracles.runtime.shadow_runtime import ShadowRuntime
from sim.choices import PlainChoices
from sim.disk.crash.image import Image
from sim.world import World
from system.agents import event
from system.ports import Host, Json, JsonObject, SideEffectClass
from system.recording.executions.execution import Execution
from system.recording.open_recording import open_recording
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.event import EventType
from system.runtime import Runtime
from system.sessions.session import SessionRecord, SessionState, encode_record
from system.storage.framing import pending_path
from system.storage.line import Line, encode_line
from system.storage.pending_writer import END_OF_ENTRY
from tests.unit.system.agents.room import (
    NOW,
    Events,
    completed,
    enqueued,
    log_of,
    message,
    record_of,
    started,
)

NAMES: Final = (
    "Ada", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jan", "Kai", "orphan",
    "empty",
)  # fmt: skip
AGENT: Final = {name: f"a{number:031x}" for number, name in enumerate(NAMES)}
SESSION: Final = {name: f"5{number:031x}" for number, name in enumerate(NAMES)}
ROOTS: Final = ("Ada", "Gus", "Hal", "Ida", "Jan", "Kai")
DAMAGED: Final = ("Gus", "Jan")

ADA, DAN, EVE = AGENT["Ada"], AGENT["Dan"], AGENT["Eve"]
EXECUTION: Final = {"second turn": f"exec-{2:016x}", "lost turn": f"exec-{3:016x}"}
ENTRIES_AT_START: Final = 4
"""The start of an execution, and the events up to the call of the provider."""


def spawn(name: str) -> JsonObject:
    return {
        "agent_id": AGENT[name], "session_id": SESSION[name], "name": name,
        "instructions": "work", "provider": "scripted", "model": "",
        "bootstrap_id": f"first of {name}",
    }  # fmt: skip


def created(name: str) -> Events:
    """Return the first lines of a root agent, or of a child of Ada with its first message."""
    root = name in ROOTS
    lines: Events = [
        (event.SESSION_CREATED, {
            "provider": "scripted", "model": "", "system_prompt": "" if root else "work",
            "identity": "",
        }),
        (event.AGENT_CREATED, {
            "agent_id": AGENT[name], "name": name,
            "parent_session_id": None if root else SESSION["Ada"],
            "instructions": "" if root else "work", "request_id": name if root else None,
        }),
    ]  # fmt: skip
    if not root:
        lines.append(enqueued(f"first of {name}", ADA, AGENT[name], "bootstrap", "work"))
    return lines


def recorded(turn_id: str, *presented: str) -> tuple[str, JsonObject]:
    """Return the start of a turn with its execution."""
    name, data = started(turn_id, *presented)
    entry = ENTRIES_AT_START * (1 + list(EXECUTION).index(turn_id))
    return name, {**data, "execution_id": EXECUTION[turn_id], "execution_entry": entry}


def of_ada() -> Events:
    children: list[Json] = [spawn("Dan"), spawn("Eve"), spawn("Finn")]
    spawned: list[Json] = [spawn("Bob"), spawn("Cleo")]
    outbox: list[Json] = [
        message("to the operator", ADA, "USER", payload="hello"),
        message("to Dan", ADA, DAN, payload="hello, Dan"),
        message("to Eve", ADA, EVE, payload="too late"),
    ]
    return [
        *created("Ada"),
        enqueued("one", "USER", ADA, payload=1),
        started("first turn", "one"),
        completed("first turn", "one", spawned=children),
        enqueued("two", "USER", ADA, payload=2),
        recorded("second turn", "two"),
        completed(
            "second turn", "two", spawned=spawned, outbox=outbox,
            controls=[{"control_id": "gate of Dan", "target": DAN, "op": "gate"}],
            subscribed=[{"subscription_id": "end of Eve", "target": EVE}],
        ),
        enqueued("three", "USER", ADA, payload=3),
        recorded("lost turn", "three"),
    ]  # fmt: skip


def completing(name: str, **more: Json) -> Events:
    """Return the lines of a child that completes in its first turn."""
    result = message(f"result of {name}", AGENT[name], ADA, "response", 42)
    bootstrap, turn_id = f"first of {name}", f"turn of {name}"
    turn = completed(turn_id, bootstrap, terminate=True, outbox=[result], **more)
    return [started(turn_id, bootstrap), turn]


def ended(name: str) -> tuple[str, JsonObject]:
    return event.AGENT_TERMINATED, {
        "agent_id": AGENT[name], "reason": "completed", "returned": [],
    }  # fmt: skip


LOGS: Final[dict[str, Events]] = {
    "Ada": of_ada(),
    "Cleo": [],
    "Dan": [*created("Dan"), started("turn of Dan", "first of Dan"),
            completed("turn of Dan", "first of Dan")],
    "Eve": [*created("Eve"), enqueued("unseen", "USER", EVE, payload="in vain"),
            *completing("Eve", returned=["unseen"])],
    "Finn": [*created("Finn"), *completing("Finn"), ended("Finn")],
    "Gus": [*created("Gus"), enqueued("damaged", "USER", AGENT["Gus"]),
            enqueued("kept", "USER", AGENT["Gus"])],
    "Hal": created("Hal"),
    "Ida": [*created("Ida"), enqueued("known", "USER", AGENT["Ida"])],
    "Jan": created("Jan"),
    "Kai": created("Kai"),
    "orphan": created("Ada")[:1],
}  # fmt: skip
STATES: Final = {
    "Ada": SessionState.ACTIVE,
    "orphan": SessionState.ACTIVE,
    "Eve": SessionState.ACTIVE,
    "Dan": None,
    "Gus": None,
}
ENTRIES: Final = {"Hal": (3, "replayed"), "Ida": (3, "known"), "Jan": (5, "ahead")}
"""The pending entries: the ``seq`` of the line, and its message."""

SENT: Final = {
    "one": (ADA, 1), "two": (ADA, 2), "three": (ADA, 3), "unseen": (EVE, "in vain"),
    "replayed": (AGENT["Hal"], None), "known": (AGENT["Ida"], None),
    "ahead": (AGENT["Jan"], None), "damaged": (AGENT["Gus"], None), "kept": (AGENT["Gus"], None),
}  # fmt: skip
"""The messages of the operator."""


def files() -> dict[str, bytes]:
    """Return the files of the root except ``root.json``, by their paths."""
    found = {
        "root.json.tmp.0000000b": b"half",
        f"{record_of(SESSION['Ada'])}.tmp.0000000a": b"half",
        f"{log_of(SESSION['Gus'])}.quarantine.1.tmp.0000000c": b"half",
        "user/events.jsonl": b'{"data":{"kin',
    }
    for name, lines in LOGS.items():
        found[log_of(SESSION[name])] = b"".join(
            encoded(name, seq, *line) for seq, line in enumerate(lines, 1)
        )
        state = STATES.get(name, SessionState.SUSPENDED)
        if state is not None:
            record = SessionRecord(SESSION[name], "scripted", "", state)
            found[record_of(SESSION[name])] = encode_record(record)
    found[log_of(SESSION["Ada"])] += encoded("Ada", 10, *enqueued("torn", "USER", ADA))[:-20]
    gus = log_of(SESSION["Gus"])
    found[gus] = found[gus].replace(b'"damaged"', b'"d\xffmaged"')
    found[record_of(SESSION["Gus"])] = b"damaged"
    for name, (seq, key) in ENTRIES.items():
        line = encoded(name, seq, *enqueued(key, "USER", AGENT[name]))
        found[pending_path(log_of(SESSION[name]))] = line + END_OF_ENTRY
    found[pending_path(log_of(SESSION["Kai"]))] = b'{"data":{"kin'
    return found


def encoded(name: str, seq: int, event_name: str, data: JsonObject) -> bytes:
    return encode_line(Line(seq, NOW, SESSION[name], event_name, data), "")


@cache
def damaged_root() -> Image:
    """Return the image of the disk at the next boot."""
    world = World(simulated_host, PlainChoices())
    host = world.boot()
    world.loop.run_until_complete(made(host))
    process = world.process
    process.mkdir("/agents")
    for name in SESSION.values():
        if name != SESSION["Bob"]:
            process.mkdir(f"/agents/{name}")
    for path, content in files().items():
        descriptor = process.open(f"/{path}", os.O_CREAT | os.O_WRONLY, 0o644)
        process.write(descriptor, content)
        process.close(descriptor)
    image = world.disk.snapshot()
    world.kill()
    return Image.of_platter(image.cached, image.next_inode)


async def made(host: Host) -> None:
    """Create a root without agents, with the executions of Ada in the log of its recording."""
    await (await Runtime.recover(host, {})).close()
    recording, _ = await open_recording(host)
    for turn_id, execution_id in EXECUTION.items():
        metadata: JsonObject = {"turn_id": turn_id, "session_id": SESSION["Ada"]}
        types, events = list[str](), list[tuple[EventType, object]]()
        for number in range(1, ENTRIES_AT_START):
            event_type = following(types)
            types.append(event_type)
            events.append((event_type, payload(event_type, number, "success")))
        envelope = FrozenEnvelope.of({"agent": "Ada", "routingMetadata": metadata})
        execution = Execution.new(
            host.clock, execution_id, envelope, SideEffectClass.REVERSIBLE, events=events
        )
        recording.begin(execution, at_once=True)
    recording.log.close()


def shadow() -> ShadowRuntime:
    """Return an oracle with the calls of the operator, in which damaged sessions are excused."""
    oracle = ShadowRuntime()
    for name in ROOTS:
        oracle.operator.creates.begin(name, name, "", "scripted", "")
        oracle.operator.acknowledge_create(name, AGENT[name])
    for key, (agent_id, sent) in SENT.items():
        oracle.operator.sends.begin(key, agent_id, sent)
        oracle.operator.sends.acknowledge(key)
    for name in DAMAGED:
        oracle.excuse(SESSION[name])
    return oracle
