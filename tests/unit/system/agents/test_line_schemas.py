"""The data of every event has the members in docs/file-formats.md, and no more."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOSPC
from typing import Any, Final

import pytest

from system.agents import event
from system.agents.turn_recorder import RecordingOptions
from system.collector import CollectionOptions
from system.durable.trigger import TriggerSpec
from system.ports import JsonObject
from system.runtime import Options
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT
from tests.unit.system.agents.acting import acting
from tests.unit.system.agents.emitting import DAY, emit
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.line_types import ADDRESS, MOMENT, TYPES
from tests.unit.system.agents.room import SECOND_NS, Room, log_of, opened

# -- the page ------------------------------------------------------------------

FORMATS: Final = (ROOT / "docs" / "file-formats.md").read_text("utf-8")
PAGE: Final = (ROOT / "docs" / "runtime.md").read_text("utf-8")
WORDS: Final = re.compile(r"`(?P<members>[^`]+)`|\((?P<note>[^()]*)\)")
VALUES: Final = re.compile(r"`\w+`( or `\w+`)+")
NESTED: Final = re.compile(r"`[^`]+`")
ONLY: Final = {"null": (None,), "true": (True,)}


@dataclass
class Member:
    """One member, and the note behind it: in brackets, or in the next cell."""

    optional: bool = False
    note: str = ""

    @property
    def nested(self) -> dict[str, Member]:
        """The members of the object, or of the objects, that it holds."""
        if self.note == "messages":
            return message()
        return members_of(self.note) if NESTED.fullmatch(self.note) else {}

    @property
    def values(self) -> Sequence[object]:
        """All that it can be, if the page says that."""
        if VALUES.fullmatch(self.note):
            return re.findall(r"\w+", self.note.replace(" or ", " "))
        return ONLY.get(self.note, ())

    @property
    def nullable(self) -> bool:
        return "null" in self.note


Members = Mapping[str, Member]


def members_of(cell: str) -> dict[str, Member]:
    """What stands in backquotes, with the brackets behind it; after "; and" it is optional."""
    members: dict[str, Member] = {}
    always, _, sometimes = cell.partition("; and")
    for part, optional in (always, False), (sometimes, True):
        for word in WORDS.finditer(part):
            if word["note"] is not None:
                members[list(members)[-1]].note = word["note"]
            else:
                members |= {name: Member(optional) for name in re.findall(r"\w+", word["members"])}
    return members


def message() -> dict[str, Member]:
    return listed("member of a message")


def listed(title: str, *, optional: bool = False) -> dict[str, Member]:
    """The members in the table whose header begins with this title."""
    rows = table_rows(FORMATS, title)
    return {name: Member(optional, note) for names, note, _ in rows for name in quoted(names)}


def own_members(event_name: str) -> dict[str, Member]:
    """The members of an event that has tables of its own."""
    title = f"member of `{event_name}`"
    return listed(title) | listed(f"further {title}", optional=True)


def table() -> dict[str, Members]:
    """The members of the data of every event, in the order of the page."""
    return {
        name: message() if data == "the message" else own_members(name) or members_of(data)
        for names, data, _ in table_rows(FORMATS, "event")
        for name in quoted(names)
    }


def payloads() -> dict[str, list[str]]:
    """The members of the payload of every kind of message for which the page lists them.

    Those of kind ``system`` are by ``notice``.
    """
    found = {quoted(kind)[0]: content for kind, _, content in table_rows(PAGE, "kind")}
    listed = {
        kind: re.findall(r'(?<!:)"(\w+)"', text.partition("{")[2].partition("}")[0])
        for kind, text in found.items()
        if kind != "system"
    }
    for row in table_rows(PAGE, "notice"):
        listed[f"system {row[0]}"] = ["notice", *re.findall(r"\w+", row[3])]
    return listed


def mistakes(data: object, members: Members) -> list[str]:
    """What is in ``data`` and not on the page, the other way round, or of another type."""
    if not isinstance(data, dict):
        return [f"{data!r} is not an object"]
    always = {name for name, member in members.items() if not member.optional}
    found = [f"{name} is missing" for name in sorted(always - set(data))]
    for name, value in data.items():
        if name not in members:
            found.append(f"{name} is not on the page")
        else:
            found += [f"{name}: {mistake}" for mistake in _mistakes(name, value, members[name])]
    return found


def _mistakes(name: str, value: Any, member: Member) -> list[str]:
    if member.values:
        return [] if value in member.values else [f"{value!r} is none of {member.values}"]
    if value is None and member.nullable:
        return []
    if member.nested:
        # Where the page shows braces, there is one object.
        items = [value] if "{" in member.note else value
        return [mistake for item in items for mistake in mistakes(item, member.nested)]
    return [] if TYPES[name](value) else [f"{value!r}"]


# -- how every line comes about ----------------------------------------------------------


def family() -> Room:
    """A root, and a child of it."""
    return parent_and_child()[0]


def everything_said() -> Room:
    """A message of every kind."""
    room, ada, bob = acting_family()
    room.say(ada, script(
        ("poke", {"to": "Bob"}), ("subscribe", {"name": "Bob"}),
        ("perform", {"action": "mail", "arguments": {"to": "Anna"}}),
    ))  # fmt: skip
    emit(room, bob, in_s=DAY)
    end(room, bob)
    room.provider.hooks["send"] = asyncio.Event().wait
    room.say(ada, "what no turn survives")
    room.provider.hooks.clear()
    room.reopen()
    room.settle()
    return room


def end(room: Room, agent_id: str) -> None:
    """Let an agent complete while a message is on its way to it."""
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(agent_id, script(("complete", {"result": 42})))
    room.say(agent_id, "too late")
    gate.set()
    room.settle()


def acting_family() -> tuple[Room, str, str]:
    """A root and its child, and a provider of actions that loses its answers."""
    room = acting(OSError("reset"))
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    return room, ada, room.named("Bob").agent_id


def turns() -> Room:
    """Turns that do everything that one can do."""
    room, ada, bob = acting_family()
    subscribed, reminded, *_ = results(room, ada, script(
        ("subscribe", {"name": "Bob"}),
        ("remind_me", {"delay_ns": SECOND_NS, "payload": "tea"}),
        ("set_agent_metadata", {"key": "mood", "value": None}),
        ("gate", {"name": "Bob"}),
        ("spawn_agent", {"name": "Kim", "instructions": "work"}),
        ("send_message", {"to": "USER", "payload": ["hello"]}),
    ))  # fmt: skip
    room.say(bob, "when you may")
    room.say(ada, script(
        ("unsubscribe", subscribed), ("cancel_reminder", reminded),
        ("permit_turn", {"name": "Bob"}),
    ))  # fmt: skip
    begun, scheduled = results(room, ada, script(
        ("begin_task", {"todos": ["tea"]}), ("schedule", {"kind": "every", "spec": "60"}),
    ))  # fmt: skip
    room.say(ada, script(
        ("checkpoint", {**begun, "event": "step"}), ("emit", {"payload": 1, "delay_ns": 10**15}),
        ("perform", {"action": "mail", "arguments": {"to": "Anna"}, **begun}),
        ("perform", {"action": "mail", "arguments": {}}), ("unschedule", scheduled),
    ))  # fmt: skip
    end(room, room.named("Kim").agent_id)
    run_a_trigger(room, ada)
    return room


def results(room: Room, agent_id: str, payload: Any) -> list[JsonObject]:
    room.provider.results.clear()
    room.say(agent_id, payload)
    return list(room.provider.results)


def failures() -> Room:
    """A turn that the provider breaks off, and one that the disk has no room for."""
    room, ada = opened()
    room.provider.fail("send")
    room.say(ada, "hello")

    async def full() -> None:
        room.files.fail("append", log_of(room.session(ada)), ENOSPC)

    room.provider.hooks["sent"] = full
    room.settle(1)
    return room


def death() -> Room:
    """A message that no turn survives."""
    room, ada = opened()
    room.provider.fail("sent", 5)
    room.say(ada, "poison")
    room.settle(60)
    return room


def delivery() -> Room:
    """A message that an agent was shown, and one that the operator has read."""
    room, ada = opened()
    room.say(ada, script(("send_message", {"to": "USER", "payload": "hello"})))
    room.run(room.runtime.acknowledge(room.runtime.view().user[0].message_id))
    return room


def endings() -> Room:
    """One agent completes, the other one is terminated before it has seen all."""
    room, ada, bob = parent_and_child()
    room.say(ada, script(("spawn_agent", {"name": "Kim"}), ("gate", {"name": "Kim"})))
    end(room, bob)
    room.run(room.runtime.terminate(room.named("Kim").agent_id))
    return room


def controls() -> Room:
    """A child that is gated, permitted a turn, and set free."""
    room, ada, _ = parent_and_child()
    bob: JsonObject = {"name": "Bob"}
    room.say(ada, script(("gate", bob), ("permit_turn", bob), ("ungate", bob)))
    return room


def restored() -> Room:
    """A conversation that is closed and taken up again."""
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    room.say(ada, "hello")
    return room


def recorded_or_not() -> Room:
    """A turn whose execution is recorded, and one that is sampled out."""
    room, ada = opened()
    room.say(ada, "hello")
    room.options = Options(recording=RecordingOptions(sample_rate=0.0))
    room.reopen()
    room.say(ada, "hello")
    run_a_trigger(room, ada)
    return room


def run_a_trigger(room: Room, agent_id: str) -> None:
    room.run(room.runtime.emit(TriggerSpec("IMMEDIATE", session_id=room.session(agent_id))))
    room.settle()


def short_logs() -> Room:
    """A root that has sent something to USER; all logs begin new segments."""
    room, ada = opened(Options(snapshot_lines=0))
    room.say(ada, script(("send_message", {"to": "USER", "payload": 1})))
    return room


def collection() -> Room:
    """A parent that is idle when its child is to be collected."""
    room, _, bob = parent_and_child(Options(collection=CollectionOptions(SECOND_NS)))
    room.run(room.runtime.terminate(bob))
    room.settle(2)
    return room


PROVOKED: Final[dict[str, Callable[[], Room]]] = {
    "session.created": family,
    "agent.created": family,
    "message.enqueued": everything_said,
    "turn.start": recorded_or_not,
    "turn.complete": turns,
    "turn.failed": failures,
    "message.delivered": delivery,
    "message.dead": death,
    "agent.terminated": endings,
    "tool.gate": controls,
    "tool.ungate": controls,
    "tool.permit_turn": controls,
    "turn.dispatched": collection,
    "log.snapshot": short_logs,
    "suspend.result": restored,
    "session.restored": restored,
}


def all_lines(room: Room) -> list[dict[str, Any]]:
    """The lines of all logs, that of USER among them."""
    sessions = sorted(room.host.files.listdir("agents"))
    folders = ["user", *(f"agents/{session}" for session in sessions)]
    logs = [f"{at}/{name}" for at in folders for name in room.host.files.listdir(at)]
    lines = [line for log in logs if ".jsonl" in log for line in room.read(log).splitlines()]
    return list(map(json.loads, lines))


def data_of(room: Room, name: str) -> list[dict[str, Any]]:
    return [line["data"] for line in all_lines(room) if line["event"] == name]


# -- both of them ------------------------------------------------------------------------


def test_every_event_of_the_table_is_provoked_and_the_runtime_knows_no_other() -> None:
    known = [value for name, value in vars(event).items() if name.isupper()]
    assert list(table()) == list(PROVOKED)
    assert sorted(known) == sorted(PROVOKED)


@pytest.mark.parametrize("name", PROVOKED)
def test_the_data_of_an_event_is_what_the_table_says(name: str) -> None:
    members = table()[name]
    found = data_of(PROVOKED[name](), name)
    assert [mistake for data in found for mistake in mistakes(data, members)] == []
    # Each case of the table has been there: what is optional, what may be null, each value.
    assert {member for data in found for member in data} == set(members)
    for member, reported in members.items():
        values = [data[member] for data in found if member in data]
        assert all(value in values for value in reported.values)
        assert not reported.nullable or None in values
        assert reported.values or not (reported.nullable or reported.nested) or any(values)


@pytest.mark.parametrize("provoke", dict.fromkeys(PROVOKED.values()))
def test_every_line_has_the_members_of_a_line_and_data_that_the_table_knows(
    provoke: Callable[[], Room],
) -> None:
    members = {quoted(row[0])[0] for row in table_rows(FORMATS, "member of a line")}
    for line in all_lines(provoke()):
        assert set(line) | {"durable"} == members
        assert MOMENT(line["ts"])
        assert ADDRESS(line["session_id"])
        assert (type(line["seq"]), type(line["v"]), type(line["crc"])) == (int, int, str)
        assert mistakes(line["data"], table()[line["event"]]) == []


def test_there_is_a_message_of_every_kind_and_the_runtimes_own_carry_what_the_page_says() -> None:
    said = data_of(everything_said(), "message.enqueued")
    reported = payloads()
    kinds = {
        f"system {one['payload']['notice']}" if one["kind"] == "system" else one["kind"]: one
        for one in said
    }
    assert set(kinds) == set(reported)
    listed = [kind for kind, members in reported.items() if members]
    assert [kind.split()[0] for kind in listed] == [
        "error", "notice", "activity", "system", "system", "system",
    ]  # fmt: skip
    for kind in listed:
        assert sorted(kinds[kind]["payload"]) == sorted(reported[kind])
