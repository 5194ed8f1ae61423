"""Bad input: its own typed error with the place and the cure, or a quarantine with a report.

What a refused call leaves is compared byte for byte with what was there before; and nothing
that was acknowledged is lost by the damage of something else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from system.agents.session import SessionState
from system.agents.store_report import Problem
from system.errors import (
    BadName,
    HasChildren,
    NameTaken,
    NewerFormat,
    NotARoot,
    NotPlainJson,
    PayloadTooLarge,
    RootInUse,
    UnknownAgent,
    UnknownMessage,
    UnknownProvider,
)
from system.host import real_host, run
from system.ports import Json, Kind
from system.runtime import Runtime
from system.storage.codec import seal
from system.storage.line import Line, encode_line
from tests.meta.source_tree import ROOT
from tests.unit.system.agents.fake_provider import FakeProvider, play
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    LIVING,
    NOW,
    ONE,
    TWO,
    Room,
    born,
    completed,
    enqueued,
    log_of,
    message,
    record_of,
)

NEWER = seal({"format": 2, "v": 2}) + b"\n"

ROOT_CURE = "name an empty directory, or a root of this runtime"
NEWER_CURE = "start the newer version that has written it"
PLAIN_CURE = "convert it to plain JSON first, or keep it in a file and hand over its name"
LARGE_CURE = "keep it in a file of its own, and send its name"


@pytest.fixture(autouse=True)
def every_lifetime_ends() -> Iterator[None]:
    yield
    while LIVING:
        LIVING.pop().world.kill()


@pytest.fixture
def room() -> Room:
    return Room()


def everything(room: Room, directory: str = "") -> dict[str, bytes]:
    """Every file below a directory, with its content."""
    found: dict[str, bytes] = {}
    for name in room.host.files.listdir(directory):
        path = f"{directory}/{name}" if directory else name
        if room.host.files.kind(path) is Kind.DIRECTORY:
            found.update(everything(room, path))
        else:
            found[path] = room.read(path)
    return found


def flipped(content: bytes, mark: bytes) -> bytes:
    """The content with one byte of ``mark`` changed."""
    at = content.index(mark)
    return content[:at] + b"?" + content[at + 1 :]


def nested(levels: int) -> Json:
    value: Json = 0
    for _ in range(levels):
        value = [value]
    return value


# -- the root ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "error", "told"),
    [
        (
            {"root.json": NEWER},
            NewerFormat,
            f"root.json: it has format=2, known is format=1; {NEWER_CURE}",
        ),
        ({"root.json": b"{}"}, NotARoot, f"root.json: it cannot be read: .*; {ROOT_CURE}"),
        ({"notes.txt": b"mine"}, NotARoot, f"it holds 'notes.txt' and no root.json; {ROOT_CURE}"),
        ({"agents/x/y": b"mine"}, NotARoot, f"it holds 'agents' and no root.json; {ROOT_CURE}"),
    ],
)
def test_a_directory_that_cannot_be_served_is_left_as_it_is(
    room: Room, files: dict[str, bytes], error: type[Exception], told: str
) -> None:
    for path, content in files.items():
        room.write(path, content)

    with pytest.raises(error, match=told):
        room.open()

    assert everything(room) == files


def test_a_root_with_a_database_is_refused_before_anything_of_it_is_touched(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, "USER")])
    room.put_session(ONE, [*born(ADA, "Ada"), turn], SessionState.ACTIVE)
    room.write("state.db", b"rows")
    before = everything(room)

    with pytest.raises(NewerFormat, match=rf"state\.db: it schedules work that .*; {NEWER_CURE}"):
        room.open()

    assert everything(room) == before


_HOLDER = """
import asyncio, sys
from system.host import real_host
from system.runtime import Runtime

async def main():
    runtime = await Runtime.open(real_host(sys.argv[1]), {})
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runtime.close()

asyncio.run(main())
"""


def test_a_root_that_another_process_has_open_is_refused_and_free_when_that_ends(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", _HOLDER, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))}

        with pytest.raises(RootInUse, match="another runtime holds it; end that one"):
            run(Runtime.open(real_host(str(tmp_path)), {}))

        assert {path: path.read_bytes() for path in before} == before
        holder.kill()

    async def boot() -> int:
        runtime = await Runtime.open(real_host(str(tmp_path)), {"scripted": FakeProvider()})
        await runtime.close()
        return runtime.report.epoch

    assert run(boot()) == 2


# -- damage ------------------------------------------------------------------------------


def two_agents(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m1", "USER", ADA)])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), enqueued("m2", "USER", BOB)])


def test_a_damaged_record_is_put_aside_told_and_written_again(room: Room) -> None:
    two_agents(room)
    damaged = flipped(room.read(record_of(ONE)), b"SUSPENDED")
    room.write(record_of(ONE), damaged)

    report = room.open(start=False).report

    (problem,) = report.problems
    assert (problem.session_id, problem.problem) == (ONE, Problem.DAMAGED)
    assert room.read(problem.quarantine) == damaged
    assert (room.named("Ada").pending, room.named("Bob").pending) == (("m1",), ("m2",))


def test_a_log_with_damage_in_the_middle_costs_that_line_and_no_other(room: Room) -> None:
    two_agents(room)
    extra = [*born(ADA, "Ada"), enqueued("m1", "USER", ADA), enqueued("m3", "USER", ADA)]
    room.put_session(ONE, extra)
    room.write(log_of(ONE), flipped(room.read(log_of(ONE)), b'"m1"'))

    report = room.open(start=False).report

    (damage,) = report.damaged
    assert b'?m1"' in room.read(damage.quarantine) or b"?" in room.read(damage.quarantine)
    assert report.missing == {ONE: ((3, 3),)}
    assert (room.named("Ada").pending, room.named("Bob").pending) == (("m3",), ("m2",))


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("message.enqueued", {"message_id": "m"}),
        ("message.enqueued", {**message("m", "USER", ADA), "kind": "telepathy"}),
        ("message.enqueued", {**message("m", "USER", ADA), "metadata": None}),
        ("turn.complete", {"turn_id": "t"}),
        ("agent.created", {}),
    ],
)
def test_a_line_that_says_something_else_than_ours_stays_in_its_session_and_is_told(
    room: Room, event: str, data: dict[str, Json]
) -> None:
    two_agents(room)
    room.put_session(ONE, [*born(ADA, "Ada"), (event, data)])
    before = room.read(log_of(ONE))

    report = room.open(start=False).report

    assert [(told.session_id, told.problem) for told in report.problems] == [
        (ONE, Problem.LOG_NEWER)
    ]
    assert room.read(log_of(ONE)) == before
    assert room.named("Bob").pending == ("m2",)


def test_a_line_to_the_operator_that_is_not_ours_stops_the_boot_and_is_left(room: Room) -> None:
    two_agents(room)
    strange = Line(1, NOW, "0" * 32, "message.enqueued", {"message_id": "m"})
    content = encode_line(strange, "")
    room.write("user/events.jsonl", content)

    with pytest.raises(NewerFormat, match=rf"user/events\.jsonl: a line of .*; {NEWER_CURE}"):
        room.open()

    assert room.read("user/events.jsonl") == content


@pytest.mark.parametrize("path", [log_of(ONE), record_of(ONE)])
def test_a_directory_in_the_place_of_a_file_stays_in_its_session_and_is_told(
    room: Room, path: str
) -> None:
    two_agents(room)
    room.host.files.unlink(path)
    room.host.files.mkdir(path)

    report = room.open(start=False).report

    assert [told.session_id for told in report.problems] == [ONE]
    assert room.named("Bob").pending == ("m2",)


def test_an_agent_whose_record_knows_of_an_end_that_its_log_has_lost_does_not_run(
    room: Room,
) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m", "USER", ADA)], SessionState.TERMINATED)

    room.open()
    room.settle(60)

    assert room.provider.prompts == []
    assert room.named("Ada").stopped == "its record says that it has ended, its log does not"
    room.calm()


# -- calls of the operator ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "error", "told"),
    [
        ([1, float("nan")], NotPlainJson, r"value\[1\]: nan is not a finite number"),
        ({"a": {1: 2}}, NotPlainJson, r"value\['a'\]: the key 1 is not a str"),
        ("\ud800", NotPlainJson, "value: lone surrogate '.ud800' at character 0"),
        (b"bytes", NotPlainJson, "value: bytes is not plain JSON data"),
        (nested(99), NotPlainJson, r"value(\[0\])+: nested deeper than 96 levels"),
        (10**5000, NotPlainJson, "value: Exceeds the limit .4300 digits.*"),
        ("x" * (1 << 20), PayloadTooLarge, "size_bytes=1048578 is over the limit of 1048576"),
    ],
    ids=["nan", "key", "surrogate", "bytes", "deep", "digits", "large"],
)
def test_a_payload_that_cannot_be_kept_is_refused_and_nothing_is_written(
    room: Room, payload: Json, error: type[Exception], told: str
) -> None:
    room.open()
    ada = room.create()
    before = everything(room)

    cure = LARGE_CURE if error is PayloadTooLarge else PLAIN_CURE
    with pytest.raises(error, match=f"{told}; {cure}$"):
        room.run(room.runtime.send(ada, payload))

    assert everything(room) == before


def test_a_refused_call_writes_nothing(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    room.say(ada, play(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
    eve = room.named("Eve").agent_id
    room.run(room.runtime.terminate(eve))
    room.settle()
    runtime, before = room.runtime, everything(room)

    for call, error, told in [
        (runtime.send("nobody", 1), UnknownAgent, "'nobody': no agent has this id; take the ids"),
        (runtime.send(eve, 1), UnknownAgent, "it has ended; take the ids from view"),
        (runtime.terminate("nobody"), UnknownAgent, "take the ids from view"),
        (runtime.terminate(eve), UnknownAgent, "it has ended; take the ids from view"),
        (runtime.terminate(ada), HasChildren, "let them end first"),
        (runtime.suspend("nobody"), UnknownAgent, "take the ids from view"),
        (runtime.acknowledge("nothing"), UnknownMessage, "see view"),
        (runtime.create_agent("Ada"), NameTaken, "choose another one"),
        (runtime.create_agent("Bob"), NameTaken, "choose another one"),
        (runtime.create_agent(""), BadName, "name='' is no name .*; choose a text of 1 to 200"),
        (runtime.create_agent("x" * 201), BadName, "'x{200}' is no name .*; choose a text"),
        (runtime.create_agent("USER"), BadName, "choose a text of 1 to 200 characters, not USER"),
        (runtime.create_agent("\ud800"), NotPlainJson, f"lone surrogate .*; {PLAIN_CURE}"),
        (runtime.create_agent("Kim", provider="x"), UnknownProvider, "known are scripted"),
        (runtime.create_agent("Kim", "x" * (1 << 20)), PayloadTooLarge, LARGE_CURE),
    ]:
        with pytest.raises(error, match=told):
            room.run(call)

    assert everything(room) == before
    room.calm()


def test_what_is_no_text_where_a_text_belongs_is_refused_by_name(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    runtime, before = cast("Any", room.runtime), everything(room)

    for call, error, told in [
        (runtime.create_agent(5), BadName, "name=5 is no name for an agent; choose a text"),
        (runtime.create_agent(None), BadName, "name=None is no name .*; choose a text"),
        (runtime.create_agent(["a"]), BadName, r"name=\['a'\] is no name .*; choose a text"),
        (runtime.create_agent("Kim", 5), NotPlainJson, f"instructions: 5 is no.*; {PLAIN_CURE}"),
        (runtime.create_agent("Kim", "", []), NotPlainJson, "provider: .. is not a text; convert"),
        (runtime.create_agent("Kim", model=5), NotPlainJson, "model: 5 is not a text; convert"),
        (runtime.create_agent("Kim", request_id=5), NotPlainJson, "request_id: 5 is not a text"),
        (runtime.send(ada, 1, message_id=5), NotPlainJson, "message_id: 5 is not a text; convert"),
        (runtime.send(ada, 1, message_id=b"5"), NotPlainJson, "message_id: b'5' is not a text"),
        (runtime.send([], 1), UnknownAgent, "take the ids from view"),
        (runtime.terminate({}), UnknownAgent, "take the ids from view"),
        (runtime.acknowledge([]), UnknownMessage, "see view"),
    ]:
        with pytest.raises(error, match=told):
            room.run(call)

    assert everything(room) == before
    room.calm()


# -- what an agent may hand over ---------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send_message", {"to": "USER", "payload": nested(97)}),
        ("send_message", {"to": "USER", "payload": 1, "reply_to": "\ud800"}),
        ("send_message", {"to": "USER", "payload": 1, "reply_to": "x" * (17 << 20)}),
        ("set_agent_metadata", {"key": "k", "value": nested(98)}),
        ("complete", {"result": nested(97)}),
        ("remind_me", {"delay_ns": 1, "payload": nested(97)}),
        ("remind_me", {"delay_ns": 10**400, "payload": 1}),
        ("remind_me", {"delay_ns": 10**4299, "payload": 1}),
    ],
)
def test_what_no_line_can_hold_is_refused_by_the_tool_and_the_turn_goes_on(
    room: Room, tool: str, arguments: dict[str, Json]
) -> None:
    room.open()
    ada = room.create()

    async def call() -> None:
        assert room.provider.tools is not None
        room.provider.results.append(room.provider.tools.call("1", tool, arguments))

    room.provider.hooks["sent"] = call
    room.say(ada, "hello")

    assert list(room.provider.results[0]) == ["error"]
    assert len(room.named("Ada").turns) == 1
    room.settle(10)
    room.calm()


def test_more_than_one_prompt_can_hold_is_shown_in_several_turns(room: Room) -> None:
    room.open(start=False)
    ada = room.create()
    for number in range(20):
        room.run(room.runtime.send(ada, f"{number} " + "x" * 1_000_000))

    room.start()
    room.settle(60)

    assert room.named("Ada").pending == ()
    shown = [
        payload for turn in range(len(room.provider.prompts)) for _, payload in room.shown(turn)
    ]
    assert [str(payload).split()[0] for payload in shown] == [str(n) for n in range(20)]
    room.calm()
