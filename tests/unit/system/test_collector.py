"""Collection: what stays of an agent that has ended, and what a later boot makes of it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from system.agents.message import Message, MessageKind
from system.durable.activity import Intent
from system.durable.emitter import checked_spec
from system.durable.ended import ended_session
from system.durable.errors import StateMissing
from system.durable.state import Transaction
from system.durable.task import Checkpoint, TaskStatus
from system.durable.trigger import TriggerSpec
from system.errors import UnknownAgent
from system.ports import Action, SideEffectClass
from system.runtime import Options
from system.storage.segments import segment_path
from tests.unit.system.agents.acting import acting, perform
from tests.unit.system.agents.damage import remove
from tests.unit.system.agents.emitting import fail_when_asked
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import NOW, SECOND_NS, Room, log_of, opened
from tests.unit.system.collected import AFTER_AN_HOUR, HOUR, collected, ended, family


def test_an_agent_is_collected_an_hour_after_its_end_and_not_before() -> None:
    room, _, bob = family()
    path = f"agents/{room.session(bob)}"
    room.settle(HOUR - 60)
    assert room.exists(path)

    room.settle(120)

    assert not room.exists(path)
    assert room.runtime.report.collected == 1
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    room.check_no_failures()


def test_a_conversation_that_a_provider_keeps_for_a_collected_agent_is_no_leak() -> None:
    room, ada, bob = family()
    identity = room.agent(bob).history.identity
    assert identity not in ("", room.agent(ada).history.identity)
    room.settle(HOUR + 1)
    assert ended(room, bob) is not None

    room.provider.kept.append("never")

    assert identity in room.provider.kept
    assert room.reopen().report.leaks == ["scripted: never"]


@pytest.mark.parametrize("table", ["triggers", "tasks", "activities"])
def test_an_agent_with_work_in_the_database_is_not_collected(table: str) -> None:
    room, _, bob = family()
    session_id = room.session(bob)
    stores = room.run(room.runtime._orchestrator.durable.opened())
    intent = Intent(
        "activity:a", Action("pay", SideEffectClass.IRREVERSIBLE, False, 1), {}, session_id
    )
    work: dict[str, Callable[[Transaction], object]] = {
        "triggers": lambda each: stores.emitter.insert(
            each, checked_spec(TriggerSpec("IMMEDIATE", None, session_id=session_id))
        ),
        "tasks": lambda each: stores.tasks.checkpoint(
            each, Checkpoint("t", session_id, 0, TaskStatus.ACTIVE, [], [("begun", None)])
        ),
        "activities": lambda each: stores.activities.intend(each, intent),
    }
    room.run(room.runtime._orchestrator.durable.run(work[table]))
    room.settle(3 * HOUR)
    assert ended(room, bob) is None

    finish = "UPDATE triggers SET status='DONE'; UPDATE tasks SET status='DONE';"
    finish += " UPDATE activity_log SET status='UNCERTAIN'"
    room.run(room.runtime._orchestrator.durable.run(lambda each: each.execute(finish)))
    room.settle(2 * HOUR)
    assert ended(room, bob) is not None


def test_an_agent_for_whose_log_a_line_waits_is_not_collected() -> None:
    room, ada, bob = family()
    message = Message("x", ada, bob, MessageKind.TEXT, "hello", NOW)
    assert room.agent(bob).log.enqueue(message)
    room.settle(3 * HOUR)
    assert ended(room, bob) is None

    room.agent(bob).log.queue.clear()
    room.settle(2 * HOUR)
    assert ended(room, bob) is not None


def test_m1_a_collected_child_that_sent_nothing_is_not_created_again() -> None:
    room, ada, _, session_id = collected()

    runtime = room.reopen()
    room.settle()

    assert [agent.agent_id for agent in runtime.view().agents] == [ada]
    assert (runtime.report.redone, runtime.report.problems) == (0, [])
    assert not room.exists(f"agents/{session_id}")


def test_m2_a_collected_child_that_completed_is_neither_lost_nor_vanished() -> None:
    room, ada = opened(AFTER_AN_HOUR)
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    room.say(room.named("Bob").agent_id, script(("complete", {"result": 42})))
    room.settle(HOUR + 1)
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]

    for _boot in range(2):
        report = room.reopen().report
        assert (report.problems, report.vanished, report.detached) == ([], [], [])


@pytest.mark.parametrize("lines_per_segment", [1_000, 3])
def test_the_last_line_of_a_completed_agent_is_durable_before_its_log_is_archived(
    lines_per_segment: int,
) -> None:
    room, ada = opened(replace(AFTER_AN_HOUR, snapshot_lines=lines_per_segment))
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    bob = room.named("Bob").agent_id
    session_id = room.session(bob)
    room.say(bob, script(("complete", {"result": 42})))
    newest = segment_path(log_of(session_id), 0 if lines_per_segment > 3 else 1)
    assert room.exists(newest)
    room.files.calls.clear()

    room.settle(HOUR + 1)

    calls = room.files.calls
    synced, archived = f"fsync {newest}", f"replace archive/{session_id}.jsonl"
    assert calls.index(synced) < calls.index(archived)


def test_m3_a_request_whose_agent_was_collected_gives_the_same_agent() -> None:
    room = Room(AFTER_AN_HOUR)
    room.open()
    ada = room.create(request_id="r")
    room.run(room.runtime.terminate(ada))
    room.settle(HOUR + 1)
    assert room.runtime.view().agents == ()

    assert room.create(request_id="r") == ada
    room.reopen()
    assert room.create(request_id="r") == ada
    assert room.runtime.view().agents == ()


def test_a_collected_agent_is_unknown_and_its_name_is_free() -> None:
    room, _, bob, _ = collected()

    with pytest.raises(UnknownAgent):
        room.run(room.runtime.send(bob, "hello"))
    assert room.create("Bob") != bob


def test_a_child_is_collected_before_its_parent() -> None:
    room, ada, _ = family()
    room.run(room.runtime.terminate(ada))

    room.settle(HOUR + 1)

    assert room.runtime.view().agents == ()
    assert room.runtime.report.collected == 2
    assert room.host.files.listdir("agents") == []


def test_a_parent_that_ends_after_its_child_is_collected_after_it() -> None:
    room, ada, _ = family()
    room.settle(HOUR // 2)
    room.run(room.runtime.terminate(ada))

    room.settle(HOUR // 2 + 1)
    assert [agent.agent_id for agent in room.runtime.view().agents] == [ada]
    room.settle(HOUR)

    assert room.runtime.view().agents == ()


def test_an_agent_that_ends_does_not_repeat_a_refused_collection_at_once() -> None:
    room, _, bob = family()
    eve = room.create("Eve")
    room.files.fail("mkdir", "archive", errno.ENOSPC)
    room.settle(HOUR + 1)
    room.run(room.runtime.terminate(eve))

    room.settle(HOUR - 10)
    assert room.exists(f"agents/{room.session(bob)}")
    room.settle(20)

    assert ended(room, bob) is not None


def test_an_agent_with_a_message_that_waits_is_not_collected() -> None:
    room, ada = opened(AFTER_AN_HOUR)
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("gate", {"name": "Bob"})))
    room.say(ada, script(("spawn_agent", {"name": "Cleo"})))
    cleo = room.named("Cleo").agent_id
    room.say(cleo, script(("send_message", {"to": "Bob", "payload": "wait"})))
    room.run(room.runtime.terminate(cleo))
    room.settle(HOUR + 1)
    assert "Cleo" in [agent.name for agent in room.runtime.view().agents]

    room.say(ada, script(("ungate", {"name": "Bob"})))
    room.settle(2 * HOUR)
    room.reopen()
    room.settle(2 * HOUR)

    assert "Cleo" not in [agent.name for agent in room.runtime.view().agents]


def test_a_log_whose_last_barrier_failed_is_not_archived_before_the_next_boot() -> None:
    """The kernel reports a failed barrier once; the next one would succeed without the line."""
    room, ada = opened(AFTER_AN_HOUR)
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    bob = room.named("Bob").agent_id
    session_id = room.session(bob)
    room.say(bob, script(("complete", {"result": 42})))
    room.files.fail("fsync", log_of(session_id), errno.EIO)

    room.settle(3 * HOUR)

    assert not room.exists(f"archive/{session_id}.jsonl")
    (shown,) = [agent for agent in room.runtime.view().agents if agent.agent_id == bob]
    assert "its barrier failed" in shown.stopped
    room.reopen()
    room.settle(HOUR + 1)
    assert ended(room, bob) is not None


def test_a_directory_whose_removal_was_interrupted_is_garbage_at_boot() -> None:
    room, ada, bob = family()
    session_id = room.session(bob)
    room.files.fail("unlink", "events.jsonl", errno.EIO)
    room.settle(HOUR + 1)
    assert room.exists(f"agents/{session_id}")

    runtime = room.reopen()

    assert not room.exists(f"agents/{session_id}")
    assert (runtime.report.collected, runtime.report.problems) == (1, [])
    assert [agent.agent_id for agent in runtime.view().agents] == [ada]


def test_a_root_with_collected_agents_is_refused_without_its_database() -> None:
    room, _, _, _ = collected()
    room.run(room.runtime.close())
    room.kill()
    for name in room.host.files.listdir(""):
        if name.startswith("state.db"):
            room.host.files.unlink(name)

    with pytest.raises(StateMissing):
        room.open()


def test_a_collection_that_a_kill_interrupts_behind_the_database_is_finished() -> None:
    room, ada, bob = family()
    session_id = room.session(bob)
    room.files.fail("replace", "root.json", errno.EIO)
    room.settle(HOUR + 1)
    assert room.exists("state.db")

    runtime = room.reopen()
    room.settle(HOUR + 1)

    assert [agent.agent_id for agent in runtime.view().agents] == [ada]
    state = runtime._orchestrator.state
    assert state is not None
    assert state.transact(lambda each: ended_session(each, session_id)) is not None


def test_agents_are_collected_a_day_behind_their_end_by_default() -> None:
    room, _, bob = family(Options())
    room.settle(24 * HOUR - 60)
    assert room.exists(f"agents/{room.session(bob)}")

    room.settle(120)

    assert ended(room, bob) is not None
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]


def test_a_runtime_without_the_option_collects_nothing() -> None:
    room, _, _ = family(Options(collection=None))

    room.settle(100 * HOUR)

    assert len(room.runtime.view().agents) == 2
    assert not room.exists("state.db")


def test_close_waits_for_no_timer() -> None:
    room, _, _ = family()

    room.run(room.runtime.close())

    assert not room.exists("archive")


def test_the_rows_about_a_collected_session_are_removed() -> None:
    room = Room(replace(AFTER_AN_HOUR, snapshot_lines=3))
    room.open()
    ada = room.create("Ada")
    for number in range(4):
        room.run(room.runtime.emit(TriggerSpec("IMMEDIATE", number, session_id=room.session(ada))))
        room.say(ada, number)
    assert rows_about(room, room.session(ada)) == [True, True]
    session_id = room.session(ada)
    room.run(room.runtime.terminate(ada))

    room.settle(2 * HOUR)

    assert ended(room, ada) is not None
    assert rows_about(room, session_id) == [False, False]


def rows_about(room: Room, session_id: str) -> list[bool]:
    """Whether ``applied`` and ``known_ids`` have a row of a session."""
    state = room.runtime._orchestrator.state
    assert state is not None
    queries = [f"SELECT 1 FROM {table} WHERE session_id=?" for table in ("applied", "known_ids")]
    return state.transact(lambda each: [bool(each.execute(q, (session_id,))) for q in queries])


def test_many_agents_are_collected_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("system.collector.AGENTS_A_BATCH", 2)
    room, ada = opened(AFTER_AN_HOUR)
    for number in range(5):
        room.run(room.runtime.terminate(room.create(f"agent {number}")))

    room.settle(2 * HOUR)

    assert [agent.agent_id for agent in room.runtime.view().agents] == [ada]
    assert room.runtime.report.collected == 5
    assert room.reopen().report.problems == []


def test_nothing_is_collected_while_a_session_cannot_be_read() -> None:
    room, _, bob = family()
    eve = room.create("Eve")
    session_id = room.session(eve)
    room.kill()
    room.files.fail("pread", log_of(session_id), errno.EIO)
    room.open()
    room.settle(2 * HOUR)
    assert ended(room, bob) is None

    room.reopen()
    room.settle(2 * HOUR)

    assert ended(room, bob) is not None


def test_nothing_is_collected_beside_a_session_of_which_nothing_is_left() -> None:
    room, ada, bob = family()
    room.say(ada, script(("spawn_agent", {"name": "Eve"})))
    eve = room.named("Eve")
    room.say(eve.agent_id, script(("send_message", {"to": "Ada", "payload": "hello"})))
    room.kill()
    remove(room, eve.session_id)
    report = room.open().report
    assert [each.session_id for each in report.problems] == [eve.session_id]

    room.settle(2 * HOUR)

    assert ended(room, bob) is None


def test_an_agent_whose_outbox_the_disk_has_refused_is_not_collected() -> None:
    room = acting(options=AFTER_AN_HOUR)
    room.open()
    ada = room.create("Ada")
    room.run(room.runtime._orchestrator.durable.opened())
    injector = fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    key = perform(room, ada)
    room.run(room.runtime.terminate(ada))
    room.settle(HOUR - 1)
    injector.remove()
    collector = room.runtime._collector
    assert collector is not None
    room.world.loop.clock.advance_to(room.world.loop.clock.now_ns + 2 * SECOND_NS)
    room.run(collector.collect())

    room.reopen()
    room.settle()

    assert [called for _, called, _ in room.effects.calls] == [key]
