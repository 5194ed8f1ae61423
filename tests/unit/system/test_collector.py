"""Collection: what stays of an agent that has ended, and what a later boot makes of it."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from system.collector import CollectionOptions
from system.durable.activity import Intent
from system.durable.emitter import checked_spec
from system.durable.ended import ENDED, Ended, ended_session
from system.durable.errors import StateMissing
from system.durable.state import Transaction
from system.durable.task import Checkpoint, TaskStatus
from system.durable.trigger import TriggerSpec
from system.errors import UnknownAgent
from system.ports import Action, SideEffectClass
from system.runtime import Options
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import SECOND_NS, Room, opened

HOUR = 3600
DAY = 24 * HOUR
AFTER_AN_HOUR = Options(collection=CollectionOptions(HOUR * SECOND_NS))


def family(options: Options = AFTER_AN_HOUR) -> tuple[Room, str, str]:
    """Ada, and her child Bob, who was terminated and has sent nothing."""
    room, ada = opened(options)
    room.say(ada, play(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    bob = room.named("Bob").agent_id
    room.run(room.runtime.terminate(bob))
    return room, ada, bob


def archived_for(seconds: int) -> Options:
    return Options(collection=CollectionOptions(HOUR * SECOND_NS, seconds * SECOND_NS))


def ended(room: Room, agent_id: str) -> Ended | None:
    """The row of a collected agent."""
    state = room.runtime._orchestrator.state
    return None if state is None else state.transact(lambda each: ENDED.read(each, agent_id))


def collected() -> tuple[Room, str, str, str]:
    room, ada, bob = family()
    session_id = room.session(bob)
    room.settle(HOUR + 1)
    return room, ada, bob, session_id


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


def test_the_archive_has_all_lines_and_the_row_says_where() -> None:
    room, ada, bob = family()
    session_id = room.session(bob)
    lines = room.read(f"agents/{session_id}/events.jsonl")
    room.settle(HOUR + 1)

    assert room.read(f"archive/{session_id}.jsonl") == lines
    assert room.runtime.report.archived_bytes == len(lines)
    state = room.runtime._orchestrator.state
    assert state is not None
    row = state.transact(lambda each: ENDED.read(each, bob))
    assert row is not None
    assert (row.session_id, row.name, row.how, row.request_id) == (
        session_id, "Bob", "operator", None,
    )  # fmt: skip
    assert (row.archive, row.parent_session_id) == (
        f"archive/{session_id}.jsonl",
        room.session(ada),
    )


def test_the_lines_of_an_agent_can_be_removed() -> None:
    room, _, bob = family(archived_for(0))
    room.settle(HOUR + 1)

    assert not room.exists("archive")
    state = room.runtime._orchestrator.state
    assert state is not None
    row = state.transact(lambda each: ENDED.read(each, bob))
    assert row is not None
    assert row.archive is None


def test_the_archive_is_removed_in_its_time() -> None:
    room, _, bob = family(archived_for(30 * DAY))
    path = f"archive/{room.session(bob)}.jsonl"
    room.settle(29 * DAY)
    assert room.exists(path)
    room.reopen()
    room.settle(DAY - 60)
    assert room.exists(path)

    room.settle(2 * HOUR)

    assert not room.exists(path)
    row = ended(room, bob)
    assert row is not None
    assert row.archive is None
    assert row.name == "Bob"
    assert room.runtime._collector is not None
    assert room.runtime._collector.tasks() == []


def test_agents_that_end_while_an_archive_waits_are_collected_in_their_time() -> None:
    room, _, _ = family(archived_for(300 * DAY))
    room.settle(2 * HOUR)
    cleo = room.create("Cleo")
    room.run(room.runtime.terminate(cleo))

    room.settle(2 * HOUR)

    assert ended(room, cleo) is not None


@pytest.mark.parametrize("call", ["unlink", "sync_dir"])
def test_an_archive_that_the_disk_refuses_to_remove_is_removed_later(call: str) -> None:
    room, _, bob = family(archived_for(2 * DAY))
    session_id = room.session(bob)
    room.settle(DAY)
    room.files.fail(call, f"{session_id}.jsonl" if call == "unlink" else "archive", errno.EIO)
    room.settle(DAY)
    row = ended(room, bob)
    assert row is not None
    assert row.archive is not None

    room.settle(2 * HOUR)

    assert not room.exists(f"archive/{session_id}.jsonl")
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


def test_m1_a_collected_child_that_sent_nothing_is_not_created_again() -> None:
    room, ada, _, session_id = collected()

    runtime = room.reopen()
    room.settle()

    assert [agent.agent_id for agent in runtime.view().agents] == [ada]
    assert (runtime.report.redone, runtime.report.problems) == (0, [])
    assert not room.exists(f"agents/{session_id}")


def test_m2_a_collected_child_that_completed_is_neither_lost_nor_vanished() -> None:
    room, ada = opened(AFTER_AN_HOUR)
    room.say(ada, play(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    room.say(room.named("Bob").agent_id, play(("complete", {"result": 42})))
    room.settle(HOUR + 1)
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]

    for _boot in range(2):
        report = room.reopen().report
        assert (report.problems, report.vanished, report.detached) == ([], [], [])


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


def test_an_agent_with_a_message_that_waits_is_not_collected() -> None:
    room, ada = opened(AFTER_AN_HOUR)
    room.say(ada, play(("spawn_agent", {"name": "Bob"}), ("gate", {"name": "Bob"})))
    room.say(ada, play(("spawn_agent", {"name": "Cleo"})))
    cleo = room.named("Cleo").agent_id
    room.say(cleo, play(("send_message", {"to": "Bob", "payload": "wait"})))
    room.run(room.runtime.terminate(cleo))
    room.settle(HOUR + 1)
    assert "Cleo" in [agent.name for agent in room.runtime.view().agents]

    room.say(ada, play(("ungate", {"name": "Bob"})))
    room.settle(2 * HOUR)
    room.reopen()
    room.settle(2 * HOUR)

    assert "Cleo" not in [agent.name for agent in room.runtime.view().agents]


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


def test_an_archive_that_the_disk_refuses_leaves_everything_as_it_was() -> None:
    room, _, bob = family()
    session_id = room.session(bob)
    room.files.fail("replace", f"{session_id}.jsonl", errno.ENOSPC)

    room.settle(HOUR + 1)

    assert room.exists(f"agents/{session_id}/events.jsonl")
    assert not room.exists("state.db")
    room.check_no_failures()
    room.settle(3 * HOUR)
    assert not room.exists(f"agents/{session_id}")


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
