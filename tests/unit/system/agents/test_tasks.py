"""Tasks of agents: checkpoints in the lines of turns, and boots that resume what nothing wakes."""

from __future__ import annotations

import json
from asyncio import Event
from typing import Any, cast

import pytest

from system.durable.task import TASKS, Task
from system.durable.trigger import Trigger
from system.ports import Json, JsonObject
from system.recovery.resume import Resume
from system.runtime import Options
from tests.unit.durable.durable_bench import task_events
from tests.unit.system.agents.emitting import DAY, emit, fail_disk, row
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import Room, opened


def begin(room: Room, agent_id: str, **arguments: Json) -> str:
    room.say(agent_id, script(("begin_task", {"todos": ["a", "b"], **arguments})))
    return str(room.provider.results[-1]["task_id"])


def checkpoint(room: Room, agent_id: str, task_id: str, **arguments: Json) -> JsonObject:
    room.say(agent_id, script(("checkpoint", {"task_id": task_id, "event": "step", **arguments})))
    return room.provider.results[-1]


def task(room: Room, task_id: str) -> Task:
    state = room.runtime._orchestrator.state
    assert state is not None
    found = state.transact(lambda each: TASKS.read(each, task_id))
    assert found is not None
    return found


def events(room: Room, task_id: str) -> list[tuple[str, Json]]:
    durable = room.runtime._orchestrator.durable
    assert durable.state is not None
    found = durable.state.transact(lambda each: task_events(each, task_id))
    return [(each.event, json.loads(each.data_json)) for each in found]


def waiting(room: Room) -> list[Trigger]:
    found = room.run(room.runtime.triggers.open_rows())
    return [each for each in found if isinstance(each, Trigger)]


def listed(room: Room, agent_id: str) -> Json:
    room.say(agent_id, script(("list_tasks", {})))
    return room.provider.results[-1]["tasks"]


def status_of_task(room: Room, agent_id: str) -> Json:
    [shown] = cast("list[JsonObject]", listed(room, agent_id))
    return shown["status"]


def test_a_task_begins_and_goes_on_with_the_lines_of_turns() -> None:
    room, ada = opened()
    task_id = begin(room, ada, data={"for": "Anna"})
    assert checkpoint(room, ada, task_id, data=1, todos=["b"]) == {"last_seq": 2}
    assert checkpoint(room, ada, task_id, data=2, status="WAITING") == {"last_seq": 3}
    found = task(room, task_id)
    assert (found.status, found.todos, found.last_seq) == ("WAITING", ["b"], 3)
    assert found.session_id == room.session(ada)
    assert events(room, task_id) == [("begin", {"for": "Anna"}), ("step", 1), ("step", 2)]
    room.check_no_failures()


def test_the_checkpoints_of_one_turn_are_one() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    step: JsonObject = {"task_id": task_id, "event": "step"}
    room.say(ada, script(
        ("checkpoint", {**step, "data": 1}), ("checkpoint", {**step, "data": 2, "status": "DONE"}),
        ("checkpoint", step), ("list_tasks", {}),
    ))  # fmt: skip
    assert room.provider.results[1:] == [
        {"last_seq": 2}, {"last_seq": 3}, {"error": f"there is no open task {task_id!r}"},
        {"tasks": []},
    ]  # fmt: skip
    data = [line.data for line in room.lines(room.session(ada)) if "tasks" in line.data]
    assert data[-1]["tasks"] == [
        {"task_id": task_id, "last_seq": 1, "status": "DONE", "todos": ["a", "b"],
         "events": [{"event": "step", "data": 1}, {"event": "step", "data": 2}]},
    ]  # fmt: skip
    assert (task(room, task_id).status, task(room, task_id).last_seq) == ("DONE", 3)


def test_a_turn_that_fails_leaves_no_checkpoint() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    room.provider.fail("sent")
    assert checkpoint(room, ada, task_id) == {"last_seq": 2}
    assert task(room, task_id).last_seq == 1
    room.settle(1)
    assert task(room, task_id).last_seq == 2


def test_an_agent_sees_its_open_tasks_also_in_the_next_boot() -> None:
    room, ada, bob = parent_and_child()
    task_id = begin(room, ada)
    begin(room, bob)
    checkpoint(room, ada, begin(room, ada), status="DONE")
    expected = [{"task_id": task_id, "status": "ACTIVE", "last_seq": 1, "todos": ["a", "b"]}]
    assert listed(room, ada) == expected
    room.reopen()
    room.settle()
    assert listed(room, ada) == expected


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"status": "BLOCKED"}, "status='BLOCKED' is none of ACTIVE, WAITING, DONE, FAILED"),
        ({"status": 7}, "status=7 is none of"),
        ({"event": None}, "event=None is not a text"),
        ({"task_id": "t"}, "there is no open task 't'"),
        ({"todos": float("inf")}, "finite"),
        ({"data": float("inf")}, "finite"),
    ],
)
def test_a_checkpoint_that_cannot_be_kept_is_refused(arguments: Any, error: str) -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    results: list[JsonObject] = []

    async def call() -> None:
        assert room.provider.tools is not None
        given = {"task_id": task_id, "event": "step", **arguments}
        results.append(room.provider.tools.call("1", "checkpoint", given))

    room.provider.hooks["sent"] = call
    room.say(ada, "go on")
    assert error in str(results[0]["error"])
    assert task(room, task_id).last_seq == 1


def test_a_task_of_another_agent_is_not_there() -> None:
    room, ada, bob = parent_and_child()
    task_id = begin(room, ada)
    assert checkpoint(room, bob, task_id) == {"error": f"there is no open task {task_id!r}"}


def test_a_checkpoint_that_the_disk_has_refused_so_far_is_followed_by_the_next_one() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    injector = fail_disk(room, "write *state.db-wal #1+ ENOSPC")
    assert checkpoint(room, ada, task_id) == {"last_seq": 2}
    assert checkpoint(room, ada, task_id) == {"last_seq": 3}
    assert task(room, task_id).last_seq == 1
    injector.remove()
    room.settle(100)
    assert task(room, task_id).last_seq == 3


def test_the_end_of_an_agent_cancels_its_tasks() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    room.run(room.runtime.terminate(ada))
    room.settle()
    assert (task(room, task_id).status, task(room, task_id).reason) == (
        "CANCELLED", "its session has ended",
    )  # fmt: skip


# -- resuming ----------------------------------------------------------------------------


def test_a_boot_resumes_an_active_task_that_nothing_else_wakes() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    room.kill()
    room.world.clock.advance(3 * DAY * 10**9)
    room.open()
    room.settle()
    kind, shown = room.shown()[0]
    assert isinstance(shown, dict)
    assert (kind, shown["source"]) == ("trigger", "RESUME")
    payload = shown["payload"]
    assert isinstance(payload, dict)
    assert (payload["task_id"], payload["last_seq"]) == (task_id, 1)
    assert int(str(payload["age_s"])) >= 3 * DAY
    assert len(room.runtime.report.resumed) == 1
    assert waiting(room) == []


def test_two_boots_in_a_row_resume_once() -> None:
    room, ada = opened()
    begin(room, ada)
    room.reopen(start=False)
    [first] = room.runtime.report.resumed
    room.reopen(start=False)
    assert room.runtime.report.resumed == []
    assert [each.id for each in waiting(room)] == [first]


@pytest.mark.parametrize("status", ["WAITING", "DONE"])
def test_a_task_that_waits_or_has_ended_is_not_resumed(status: str) -> None:
    room, ada = opened()
    checkpoint(room, ada, begin(room, ada), status=status)
    room.reopen(start=False)
    assert room.runtime.report.resumed == []


def test_an_agent_with_a_message_or_a_trigger_is_woken_by_that() -> None:
    room, ada = opened()
    begin(room, ada)
    emit(room, ada, in_s=DAY)
    room.reopen(start=False)
    assert room.runtime.report.resumed == []
    room, ada = opened()
    begin(room, ada)
    room.run(room.runtime.send(ada, "hello"))
    room.reopen(start=False)
    assert room.runtime.report.resumed == []


def test_an_interrupted_turn_is_notice_enough() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    room.provider.fail("sent", 1)
    checkpoint(room, ada, task_id)
    room.reopen()
    assert room.runtime.report.resumed == []


@pytest.mark.parametrize(("resume", "resumed"), [(Resume.NONE, 0), (Resume.ROOTS, 1)])
def test_the_policy_of_the_boot_holds_tasks_back(resume: Resume, resumed: int) -> None:
    room, ada, bob = parent_and_child()
    begin(room, ada)
    begin(room, bob)
    room.options = Options(resume=resume)
    room.reopen()
    assert len(room.runtime.report.resumed) == resumed


def test_a_task_whose_turns_kill_the_process_is_blocked_and_reported_once() -> None:
    room, ada = opened(Options(most_attempts=2))
    task_id = begin(room, ada)
    resumed = 0

    async def die() -> None:
        nonlocal resumed
        if "RESUME" in room.provider.prompts[-1]:
            resumed += 1
            await Event().wait()

    for _ in range(5):
        room.provider.hooks["send"] = die
        room.reopen()
        room.settle()
    assert resumed == 2
    assert task(room, task_id).status == "BLOCKED"
    [report] = room.runtime.view().user
    assert report.message_id.endswith(".dead")
    assert isinstance(report.payload, dict)
    assert report.payload["key"] == f"resume:{task_id}"


def blocked() -> tuple[Room, str, str]:
    """Return a root, an agent in it, and its task, which a failed turn has blocked."""
    room, ada = opened(Options(most_attempts=1))
    task_id = begin(room, ada)
    room.kill()
    room.provider.fail("sent")
    room.open()
    room.settle(2)
    assert task(room, task_id).status == "BLOCKED"
    return room, ada, task_id


def test_a_person_retries_the_trigger_of_a_blocked_task() -> None:
    room, ada, task_id = blocked()
    assert status_of_task(room, ada) == "BLOCKED"
    [dead] = waiting(room)
    room.run(room.runtime.triggers.retry(dead.id))
    room.settle()
    assert waiting(room) == []
    assert status_of_task(room, ada) == "ACTIVE"
    assert "RESUME" in "".join(room.provider.prompts[-2:])
    assert task(room, task_id).status == "ACTIVE"


def test_a_turn_of_a_blocked_task_goes_on_with_it() -> None:
    room, ada, task_id = blocked()
    assert checkpoint(room, ada, task_id) == {"last_seq": 2}
    assert task(room, task_id).status == "ACTIVE"


# -- emitting ----------------------------------------------------------------------------


def test_an_agent_gives_itself_something_to_do() -> None:
    room, ada = opened()
    room.say(
        ada, script(("emit", {"payload": "tea", "description": "brew", "delay_ns": 5 * 10**9}))
    )
    [trigger] = waiting(room)
    assert room.provider.results == [{"trigger_id": trigger.id}]
    room.settle(4)
    assert waiting(room) == [trigger]
    room.settle(1)
    kind, shown = room.shown()[0]
    assert isinstance(shown, dict)
    assert (kind, shown["source"], shown["payload"]) == ("trigger", "IMMEDIATE", "tea")
    assert (shown["description"], shown["fire_at"]) == ("brew", trigger.fire_at)


def test_a_key_that_is_taken_emits_nothing() -> None:
    room, ada = opened()
    memory: JsonObject = {"payload": 1, "source": "SKILL_WORKFLOW", "key": "skill:w:1"}
    room.say(ada, script(("emit", {**memory, "delay_ns": 10**12}), ("emit", memory)))
    assert len(waiting(room)) == 1


def test_a_continuation_has_the_key_of_the_trigger_that_its_turn_settles() -> None:
    room, ada = opened()
    task_id = begin(room, ada)
    again: JsonObject = {"payload": None, "source": "RESUME", "key": f"resume:{task_id}"}
    room.reopen(start=False)
    [first] = waiting(room)

    async def go_on() -> None:
        room.provider.hooks.clear()
        assert room.provider.tools is not None
        room.provider.tools.call("1", "emit", {**again, "priority": 7, "delay_ns": 10**12})

    room.provider.hooks["sent"] = go_on
    room.start()
    room.settle()
    [second] = waiting(room)
    assert (second.dedup_key, second.priority) == (first.dedup_key, 7)
    assert row(room, first.id).status == "DONE"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"source": "OTHER"}, "source='OTHER' is none of"),
        ({"source": "SCHEDULED", "key": "reminder:r"}, "come from remind_me and schedule"),
        ({"source": "RESUME", "key": "resume:t"}, "there is no open task 't'"),
        ({"key": "skill:w:1"}, "belongs to source=SKILL_WORKFLOW"),
        ({"priority": "high"}, "priority='high' is not an integer"),
        ({"priority": 1}, "priority=1 is not from 10 to 10"),
        ({"delay_ns": -1}, "delay_ns=-1 is not a number of nanoseconds"),
        ({"delay_ns": 10**20}, "delay_ns is over the limit"),
        ({"description": 7}, "description=7 is not a text"),
    ],
)
def test_a_trigger_that_cannot_be_emitted_is_refused(arguments: JsonObject, error: str) -> None:
    room, ada = opened()
    room.say(ada, script(("emit", {"payload": 1, **arguments})))
    assert error in str(room.provider.results[-1]["error"])
    assert not room.exists("state.db")
