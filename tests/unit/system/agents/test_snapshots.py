"""Snapshots of an agent's log: after a boot everything is as if the whole log had been read."""

from __future__ import annotations

import errno

import pytest

from system.agents.agent import Agent
from system.agents.history import History
from system.agents.snapshot_data import snapshot_data
from system.agents.snapshots import Snapshots
from system.agents.turns import MOST_PRESENTATIONS
from system.errors import LineTooLarge
from system.ports import JsonObject
from system.recovery.recovery_text import recovery_text
from system.runtime import Options
from system.sessions.session_problem import Problem
from system.storage.segments import segment_path, segments_in
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, log_of, opened

SHORT = Options(snapshot_lines=3)


def segments(room: Room, session_id: str) -> list[str]:
    names = room.host.files.listdir(f"agents/{session_id}")
    return [name for name in names if name.endswith(".jsonl")]


def state(history: History) -> dict[str, object]:
    """Everything that a log leads to, but for what only the reading of lines counts."""
    names = set(History.__slots__) - {"exchanges", "recorded", "last_ts", "seq", "sources"}
    # Recovery reads children and outboxes; the running session drops those that are dispatched.
    names -= {"promises", "unreachable"}
    return {name: getattr(history, name) for name in sorted(names)}


def busy() -> tuple[Room, str, str]:
    """Ada, whose log has begun a segment, and her child Bob."""
    room, ada = opened(SHORT)
    room.say(ada, script(
        ("spawn_agent", {"name": "Bob"}), ("subscribe", {"name": "Bob"}),
        ("remind_me", {"delay_ns": 10**15, "payload": "tea"}),
        ("set_agent_metadata", {"key": "mood", "value": "glad"}),
    ))  # fmt: skip
    return room, ada, room.named("Bob").agent_id


def test_a_boot_from_a_snapshot_leads_to_the_state_of_the_running_session() -> None:
    room, ada, bob = busy()
    room.say(ada, script(("gate", {"name": "Bob"}), ("permit_turn", {"name": "Bob"})))
    before = [state(room.agent(agent).history) for agent in (ada, bob)]
    assert "events.1.jsonl" in segments(room, room.session(ada))

    room.reopen(start=False)

    assert [state(room.agent(agent).history) for agent in (ada, bob)] == before
    assert room.runtime.report.problems == []


def test_a_snapshot_has_the_permits_of_a_gated_agent() -> None:
    room, ada, bob = busy()
    room.say(ada, script(("gate", {"name": "Bob"})))
    for _ in range(3):
        room.say(ada, script(("permit_turn", {"name": "Bob"})))
    room.say(bob, "work")
    room.say(bob, "more work")
    log = log_of(room.session(bob))
    newest = max(segments_in(segments(room, room.session(bob)), log))
    assert b"tool.permit_turn" not in room.read(segment_path(log, newest))

    room.reopen(start=False)

    assert (room.named("Bob").gated, room.named("Bob").permits) == (True, 1)


def test_a_snapshot_names_the_execution_that_the_next_turn_retries() -> None:
    room, ada = opened(SHORT)
    room.provider.fail("sent", MOST_PRESENTATIONS)
    room.say(ada, "dead")
    room.settle(100)
    failed = room.agent(ada).history.retry_of
    assert failed is not None
    assert b'"retry_of":"%b"' % failed.encode() in room.read(
        f"agents/{room.session(ada)}/{segments(room, room.session(ada))[-2]}"
    )

    room.reopen(start=False)

    assert room.agent(ada).history.retry_of == failed


def test_the_snapshot_is_the_first_line_of_the_new_segment() -> None:
    room, ada, _ = busy()
    session_id = room.session(ada)
    first = room.read(f"agents/{session_id}/events.1.jsonl").splitlines()[0]

    assert b'"event":"log.snapshot"' in first
    assert b'"seq":7' in first
    assert len(room.lines(session_id)) == 6


def test_a_log_that_is_not_long_stays_in_one_segment() -> None:
    room, ada = opened()
    for number in range(5):
        room.say(ada, number)

    assert segments(room, room.session(ada)) == ["events.jsonl"]


def test_a_bare_model_gets_the_whole_conversation_from_all_segments() -> None:
    room, ada = opened(SHORT)
    for number in range(6):
        room.say(ada, number)
    assert len(segments(room, room.session(ada))) > 1
    agent = room.agent(ada)

    exchanges = room.run(agent.log.conversation())

    assert [exchange.prompt for exchange in exchanges] == room.provider.prompts
    assert len(agent.history.exchanges) < 6


def test_a_view_counts_all_turns_and_shows_the_last_ids() -> None:
    room, ada = opened(SHORT)
    for number in range(20):
        room.say(ada, number)
    shown = room.named("Ada")

    room.reopen(start=False)

    assert (shown.turns, len(shown.last_turns)) == (20, 16)
    assert room.named("Ada")[5:7] == shown[5:7]


def test_an_id_of_the_operator_is_known_behind_every_snapshot() -> None:
    room, ada = opened(SHORT)
    message_id = room.run(room.runtime.send(ada, "once"))
    for number in range(20):
        room.say(ada, number)
    room.reopen()

    room.run(room.runtime.send(ada, "once", message_id))
    room.settle()

    assert room.named("Ada").turns == 21


def test_a_snapshot_forgets_ids_that_cannot_be_dispatched_again() -> None:
    room, ada, bob = busy()
    for number in range(8):
        room.say(ada, script(("send_message", {"to": "Bob", "payload": number})))
    history = room.agent(bob).history

    assert len(history.enqueued) < 9
    assert not history.from_user
    assert history.dispatched_of.keys() == {room.session(ada)}
    assert room.named("Bob").turns >= 8


def test_a_line_below_the_mark_of_a_snapshot_is_not_enqueued_again() -> None:
    # Damage takes the end of Ada's log, and with it the watermark; Bob has forgotten the ids.
    room, ada, bob = busy()
    for number in range(8):
        room.say(ada, script(("send_message", {"to": "Bob", "payload": number})))
    session_id = room.session(ada)
    newest = f"agents/{session_id}/{segments(room, session_id)[-2]}"
    mark = room.agent(bob).history.dispatched_of[session_id]
    turns = room.named("Bob").turns
    room.kill()
    content = room.read(newest).splitlines(keepends=True)
    room.write(newest, content[0])

    room.open()
    room.settle()

    assert room.named("Bob").turns == turns
    agent = room.agent(ada)
    assert agent.log.log is not None
    assert agent.log.log.last_seq >= mark
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "after the damage"})))
    assert room.named("Bob").turns == turns + 1


def test_lost_lines_below_the_mark_of_a_snapshot_are_reported_as_missing() -> None:
    room, ada, bob = busy()
    for number in range(8):
        room.say(ada, script(("send_message", {"to": "Bob", "payload": number})))
    session_id = room.session(ada)
    mark = room.agent(bob).history.dispatched_of[session_id]
    room.kill()
    for name in segments(room, session_id)[:-1]:
        room.host.files.unlink(f"agents/{session_id}/{name}")
    last = len(room.lines(session_id))
    assert last < mark

    assert room.open(start=False).report.missing == {session_id: ((last + 1, mark),)}


def test_a_snapshot_that_the_disk_refuses_is_tried_again_later() -> None:
    room, ada = opened(Options(snapshot_lines=5))
    session_id = room.session(ada)
    room.files.fail("replace", "events.1.jsonl", errno.ENOSPC)
    room.say(ada, "one")
    room.say(ada, "two")
    assert segments(room, session_id) == ["events.jsonl"]

    room.say(ada, "three")

    assert segments(room, session_id) == ["events.1.jsonl", "events.jsonl"]
    assert room.named("Ada").trouble == ""


def test_a_snapshot_that_is_too_large_for_a_line_leaves_the_log_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, ada = opened(SHORT)

    def refuse(_snapshots: Snapshots, _agent: Agent) -> JsonObject:
        raise LineTooLarge("events.1.jsonl", "size_bytes=1")

    monkeypatch.setattr(Snapshots, "_snapshot_of", refuse)
    room.say(ada, "one")
    room.say(ada, "two")

    assert segments(room, room.session(ada)) == ["events.jsonl"]
    assert (room.named("Ada").turns, room.named("Ada").trouble) == (2, "")


def test_a_segment_without_a_durable_name_stops_the_agent_until_the_next_boot() -> None:
    room, ada = opened(SHORT)
    room.files.fail("sync_dir", room.session(ada), errno.EIO)
    room.say(ada, "one")
    assert "the barrier of a new segment failed" in room.named("Ada").stopped

    room.reopen()
    room.say(ada, "two")

    assert (room.named("Ada").turns, room.named("Ada").stopped) == (2, "")


def test_a_damaged_snapshot_is_reported_and_loses_nothing() -> None:
    room, ada = opened(SHORT)
    for number in range(4):
        room.say(ada, number)
    session_id = room.session(ada)
    newest = f"agents/{session_id}/{segments(room, session_id)[-2]}"
    room.kill()
    room.write(newest, room.read(newest).replace(b'"format":1', b'"format":2', 1))

    runtime = room.open()
    room.say(ada, "five")

    assert runtime.report.fallbacks == [session_id]
    assert f"  session {session_id}: its newest snapshot was damaged; the one before was read" in (
        list(recovery_text(runtime.report))
    )
    assert room.named("Ada").turns == 5


def test_a_snapshot_of_a_newer_format_is_not_served() -> None:
    room, ada = opened(SHORT)
    room.say(ada, "one")
    agent = room.agent(ada)
    newer = {**room.run(_snapshot(agent)), "format": 2}
    assert agent.log.log is not None
    agent.log.log.begin_segment(newer)

    runtime = room.reopen()

    (problem,) = runtime.report.problems
    assert problem.problem is Problem.LOG_NEWER
    assert "format=2, known is format=1" in problem.detail


async def _snapshot(agent: Agent) -> JsonObject:
    return snapshot_data(agent.history, [], [], {}, frozenset())


def test_the_log_of_user_begins_segments_too() -> None:
    room, ada = opened(SHORT)
    for number in range(4):
        room.say(ada, script(("send_message", {"to": "USER", "payload": number})))
    first = room.runtime.view().user[0].message_id
    room.run(room.runtime.acknowledge(first))
    assert "events.1.jsonl" in room.host.files.listdir("user")

    room.reopen(start=False)

    assert [payload for _, payload in room.to_user()] == [1, 2, 3]
    room.run(room.runtime.acknowledge(first))


def test_a_record_of_every_turn_is_complete_though_its_line_is_not_read() -> None:
    room, ada = opened(SHORT)
    for number in range(4):
        room.say(ada, number)

    runtime = room.reopen()

    assert runtime.report.incomplete == []
    assert runtime.report.lines == 1


def test_a_refused_line_about_a_failed_turn_is_not_written_behind_a_snapshot() -> None:
    room, ada = opened(SHORT)
    session_id = room.session(ada)
    room.provider.fail("sent", 5)
    # The message, five starts and failures, and four lines about the restored conversation.
    room.files.fail("append", "events.jsonl", errno.ENOSPC, nth=15)
    room.say(ada, "poison")
    room.settle(60)
    assert room.events(session_id).count("turn.failed") == 4
    assert segments(room, session_id) == ["events.1.jsonl", "events.jsonl"]

    room.say(ada, "food")

    assert room.named("Ada").turns == 1
    assert b"turn.failed" not in room.read(f"agents/{session_id}/events.1.jsonl")
