"""Bad input: a typed error with the place and the cure, or a quarantine with a report.

A refused call leaves every file as it was, byte for byte. Damage in one place loses no
acknowledged data elsewhere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from system.durable.errors import StateDamaged
from system.errors import (
    LogMissing,
    NewerFormat,
    NotARoot,
    RootInUse,
)
from system.host import real_host, run
from system.ports import Json
from system.root import take_lock
from system.runtime import Runtime
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem
from system.storage.codec import seal
from system.storage.line import Line, encode_line
from tests.meta.source_tree import ROOT
from tests.unit.system.agents.everything import everything
from tests.unit.system.agents.fake_provider import FakeProvider
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    NOW,
    ONE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    message,
    record_of,
)

NEWER = seal({"format": 3, "v": 3}) + b"\n"

ROOT_CURE = "name an empty directory, or a root of this runtime"
NEWER_CURE = "start the newer version that has written it"


def flipped(content: bytes, mark: bytes) -> bytes:
    """The content with one byte of ``mark`` changed."""
    at = content.index(mark)
    return content[:at] + b"?" + content[at + 1 :]


# -- the root ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        (
            {"root.json": NEWER},
            NewerFormat,
            f"root.json: it has format=3, known is format=2; {NEWER_CURE}",
        ),
        ({"root.json": b"{}"}, NotARoot, f"root.json: it cannot be read: .*; {ROOT_CURE}"),
        ({"notes.txt": b"mine"}, NotARoot, f"it holds 'notes.txt' and no root.json; {ROOT_CURE}"),
        ({"agents/x/y": b"mine"}, NotARoot, f"it holds 'agents' and no root.json; {ROOT_CURE}"),
    ],
)
def test_a_directory_that_cannot_be_served_is_left_as_it_is(
    room: Room, files: dict[str, bytes], error: type[Exception], message: str
) -> None:
    for path, content in files.items():
        room.write(path, content)

    with pytest.raises(error, match=message):
        room.open()

    assert everything(room) == files


def test_a_root_with_a_damaged_database_is_refused_before_anything_is_touched(
    room: Room,
) -> None:
    turn = completed("t", outbox=[message("x", ADA, "USER")])
    room.put_session(ONE, [*created(ADA, "Ada"), turn], SessionState.ACTIVE)
    room.write("state.db", b"rows" * 100)
    before = everything(room)

    with pytest.raises(StateDamaged, match=r"state\.db: SQLite cannot read it .*; restore it from"):
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


def test_a_root_whose_lock_the_kernel_refuses_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    files = real_host(str(tmp_path)).files
    monkeypatch.setattr(fcntl, "flock", refuse)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match="locks"):
        take_lock(files)
    assert os.listdir("/proc/self/fd") == before


# -- damage ------------------------------------------------------------------------------


def two_agents(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m1", "USER", ADA)])
    room.put_session(TWO, [*created(BOB, "Bob", ONE), enqueued("m2", "USER", BOB)])


def test_a_damaged_record_is_quarantined_reported_and_written_again(room: Room) -> None:
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
    extra = [*created(ADA, "Ada"), enqueued("m1", "USER", ADA), enqueued("m3", "USER", ADA)]
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
def test_an_unknown_line_stays_in_its_session_and_is_reported(
    room: Room, event: str, data: dict[str, Json]
) -> None:
    two_agents(room)
    room.put_session(ONE, [*created(ADA, "Ada"), (event, data)])
    before = room.read(log_of(ONE))

    report = room.open(start=False).report

    assert [(message.session_id, message.problem) for message in report.problems] == [
        (ONE, Problem.LOG_NEWER)
    ]
    assert room.read(log_of(ONE)) == before
    assert room.named("Bob").pending == ("m2",)


def test_a_root_with_agents_and_no_log_of_the_operator_is_refused(room: Room) -> None:
    two_agents(room)
    path = "user/events.jsonl"
    room.files.unlink(path)

    with pytest.raises(LogMissing, match=r"user/events\.jsonl: the root has agents, but not"):
        room.open()

    assert not room.exists(path)
    room.write(path, b"")
    assert room.open(start=False).report.problems == []


def test_a_line_to_the_operator_that_is_not_ours_stops_the_boot_and_is_left(room: Room) -> None:
    two_agents(room)
    strange = Line(1, NOW, "0" * 32, "message.enqueued", {"message_id": "m"})
    content = encode_line(strange, "")
    room.write("user/events.jsonl", content)

    with pytest.raises(NewerFormat, match=rf"user/events\.jsonl: a line of .*; {NEWER_CURE}"):
        room.open()

    assert room.read("user/events.jsonl") == content


@pytest.mark.parametrize("path", [log_of(ONE), record_of(ONE)])
def test_a_directory_in_the_place_of_a_file_affects_its_session_only_and_is_reported(
    room: Room, path: str
) -> None:
    two_agents(room)
    room.host.files.unlink(path)
    room.host.files.mkdir(path)

    report = room.open(start=False).report

    assert [message.session_id for message in report.problems] == [ONE]
    assert room.named("Bob").pending == ("m2",)


def test_an_agent_whose_record_knows_of_an_end_that_its_log_has_lost_does_not_run(
    room: Room,
) -> None:
    room.put_session(
        ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA)], SessionState.TERMINATED
    )

    room.open()
    room.settle(60)

    assert room.provider.prompts == []
    assert room.named("Ada").stopped == "its record says that it has ended, its log does not"
    room.check_no_failures()
