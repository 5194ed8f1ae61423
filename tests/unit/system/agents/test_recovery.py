"""Recovery as a whole: of an empty root, repeated, refused, interrupted; and its report."""

from __future__ import annotations

import errno
from asyncio import sleep, wait_for

import pytest

from system.agents import event
from system.agents.provider_state import ProviderState
from system.durable.errors import StateDamaged
from system.ports import ProviderError
from system.runtime import Runtime
from system.sessions.session import SessionState
from tests.unit.system.agents.boot import END, recovered
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    EVE,
    ONE,
    THREE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    message,
    record_of,
    spawned,
    started,
)


def test_an_empty_directory_is_a_root_with_nothing_in_it(room: Room) -> None:
    report = recovered(room).report

    assert (report.epoch, report.sessions, report.living, report.lines) == (1, 0, 0, 0)
    assert (report.problems, report.orphans, report.swept, report.leaks) == ([], [], [], [])
    assert room.runtime.view().agents == ()


def test_a_second_recovery_changes_nothing_but_the_epoch(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA), started("t", "m")])
    recovered(room)
    room.kill()
    paths = [log_of(ONE), record_of(ONE), "root.json", "user/events.jsonl"]
    before = [room.read(path) for path in paths]

    recovered(room)

    assert [room.read(path) for path in paths] == before
    assert room.host.files.listdir(f"agents/{ONE}") == ["events.jsonl", "session.json"]
    assert (room.runtime.report.epoch, room.runtime.report.lost_turns) == (3, {})
    assert room.runtime.report.redone == 0


def test_temporary_files_of_sessions_and_of_the_root_are_swept(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    left = [
        f"{record_of(ONE)}.tmp.0000000a", "root.json.tmp.0000000b",
        "user/events.1.jsonl.tmp.0000000c",
    ]  # fmt: skip
    for path in left:
        room.write(path, b"half")

    recovered(room)

    assert sorted(room.runtime.report.swept) == sorted(left)
    assert not any(room.exists(path) for path in left)


def test_a_boot_that_fails_lets_nobody_write_after_it(room: Room) -> None:
    turn = completed(
        "t", spawned=[spawned(BOB, TWO, "Bob")], outbox=[message("x", ADA, "USER", payload="hello")]
    )
    room.put_session(
        ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA), started("s", "m"), turn]
    )
    # The entry for USER is refused and would be dispatched later; then the boot itself breaks off.
    room.files.fail("append", "user/events.jsonl", errno.ENOSPC)

    async def never() -> None:
        await sleep(3600)

    room.provider.hooks["identities"] = never
    with pytest.raises(TimeoutError):
        room.run(wait_for(Runtime.recover(room.host, room.providers, room.options), 0.5))
    room.provider.hooks.clear()
    before = room.read("user/events.jsonl")

    room.settle(60)

    assert room.read("user/events.jsonl") == before == b""
    assert recovered(room).report.sessions == 2
    assert room.to_user() == [("text", "hello")]


def test_a_root_whose_database_cannot_be_read_is_refused_and_its_lock_is_free(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.write("state.db", b"no database" * 100)
    epoch = room.read("runtime.lock")
    with pytest.raises(StateDamaged, match="file is not a database"):
        recovered(room)
    assert room.read("runtime.lock") == epoch
    room.host.files.unlink("state.db")

    assert recovered(room).report.sessions == 1


def test_a_database_that_the_marker_does_not_name_yet_is_completed(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.write("state.db", b"")

    assert recovered(room).report.sessions == 1

    assert b'"format":2' in room.read("root.json")


def test_no_log_is_made_where_one_was_lost(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.host.files.unlink(log_of(ONE))

    assert [reported.session_id for reported in recovered(room).report.problems] == [ONE]
    assert room.host.files.listdir(f"agents/{ONE}") == ["session.json"]


def test_a_session_without_a_log_stops_no_other(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.put_session(TWO, created(BOB, "Bob"))
    room.host.files.unlink(log_of(ONE))

    recovered(room)

    assert (room.named("Bob").alive, room.named("Bob").stopped) == (True, "")


def test_the_report_counts_what_there_is(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.put_session(TWO, [*created(BOB, "Bob", ONE), END], SessionState.TERMINATED)
    room.put_session(THREE, created(EVE, "Eve", ONE))

    report = recovered(room).report

    assert (report.epoch, report.sessions, report.living, report.lines) == (2, 3, 2, 7)


def test_conversations_that_no_session_knows_are_listed(room: Room) -> None:
    # The provider has created it, and nothing of it is on the disk.
    room.put_session(ONE, created(ADA, "Ada", identity="known from the log"))
    blob = ProviderState("known from the record").encoded()
    room.put_session(TWO, created(BOB, "Bob"), SessionState.SUSPENDED, blob)
    room.provider.kept = ["known from the log", "known from the record", "leaked"]

    assert recovered(room).report.leaks == ["scripted: leaked"]


def test_a_conversation_may_belong_to_a_session_that_cannot_be_read(room: Room) -> None:
    room.put_session(ONE, [(event.SESSION_CREATED, {"of": "a later version"})])
    room.provider.kept = ["perhaps its own"]

    report = recovered(room).report

    assert [reported.session_id for reported in report.problems] == [ONE]
    assert report.leaks == []


def test_a_provider_that_does_not_say_what_it_keeps_hinders_nobody(room: Room) -> None:
    room.provider.fail("identities", error=ProviderError("ask later"))

    assert recovered(room).report.leaks == []


def test_every_acknowledged_change_is_there_after_a_kill(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(
        ("spawn_agent", {"name": "Bob"}), ("set_agent_metadata", {"key": "k", "value": 1}),
        ("send_message", {"to": "USER", "payload": "hello"}),
    ))  # fmt: skip
    before = room.runtime.view()

    room.reopen(start=False)

    assert room.runtime.view() == before
    assert room.runtime.report.lost_turns == {}
