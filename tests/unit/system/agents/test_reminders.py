"""Reminders: due once, in this life or in the next one."""

from __future__ import annotations

import json

import pytest

from system.durable.errors import AlreadyDecided
from system.durable.trigger import Trigger
from system.ports import JsonObject, ProviderError
from system.runtime import Options
from tests.unit.system.agents.emitting import emit, fail_disk, fail_when_asked, row, status
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import (
    ADA,
    ONE,
    SECOND_NS,
    Room,
    completed,
    created,
    enqueued,
    opened,
)


def remind(room: Room, agent_id: str, delay_ns: int) -> str:
    room.say(agent_id, script(("remind_me", {"delay_ns": delay_ns, "payload": "tea"})))
    return str(room.provider.results[-1]["reminder_id"])


def test_a_reminder_comes_when_its_time_has_come() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    room.settle(4)
    assert room.shown() != [("reminder", "tea")]

    room.settle(1)

    assert room.shown() == [("reminder", "tea")]
    lines = room.lines(room.session(ada))
    assert [(line.event, line.data["trigger_id"]) for line in lines[-2:]] == [
        ("turn.start", reminder_id), ("turn.complete", reminder_id),
    ]  # fmt: skip
    assert row(room, reminder_id).status == "DONE"
    room.check_no_failures()


def test_a_reminder_is_shown_as_the_agent_has_set_it() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 0)
    [shown] = json.loads(room.provider.prompts[-1])
    assert shown == {
        "message_id": reminder_id, "sender": ada, "sender_name": "Ada", "kind": "reminder",
        "payload": "tea", "reply_to": None,
    }  # fmt: skip


def test_a_reminder_of_the_life_before_comes_all_the_same_and_once() -> None:
    # Planted bug R21: reminders were volatile.
    room, ada, _ = parent_and_child()
    remind(room, ada, 5 * SECOND_NS)
    room.reopen()
    prompts = len(room.provider.prompts)

    room.settle(5)
    room.reopen()
    room.settle(10)

    assert len(room.provider.prompts) == prompts + 1


def test_a_reminder_that_is_overdue_at_a_boot_comes_at_once() -> None:
    room, ada, _ = parent_and_child()
    remind(room, ada, 5 * SECOND_NS)
    room.kill()
    room.world.clock.advance(60 * SECOND_NS)
    room.open()

    room.settle()

    assert room.shown() == [("reminder", "tea")]


def test_reminder_comes_soon_after_a_clock_that_was_behind_is_set_right() -> None:
    day_ns = 24 * 3600 * SECOND_NS
    room, ada, _ = parent_and_child()
    remind(room, ada, 5 * SECOND_NS)
    room.kill()
    room.world.clock.step_wall(-day_ns)
    room.open()
    room.settle(60)
    assert room.shown() != [("reminder", "tea")]

    room.world.clock.step_wall(day_ns)
    room.settle(600)

    assert room.shown() == [("reminder", "tea")]


def test_clock_that_is_set_back_does_not_delay_a_reminder() -> None:
    room, ada, _ = parent_and_child()
    remind(room, ada, 2000 * SECOND_NS)
    room.settle(1000)
    room.world.clock.step_wall(-3600 * SECOND_NS)
    room.settle(999)
    assert room.shown() != [("reminder", "tea")]

    room.settle(1)

    assert room.shown() == [("reminder", "tea")]


def test_a_cancelled_reminder_never_comes() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    room.say(ada, script(("cancel_reminder", {"reminder_id": reminder_id})))
    prompts = len(room.provider.prompts)

    room.settle(10)

    assert len(room.provider.prompts) == prompts
    room.check_no_failures()


def test_a_reminder_that_is_cancelled_in_its_own_turn_never_comes() -> None:
    room, ada, _ = parent_and_child()

    async def change_its_mind() -> None:
        tools = room.provider.tools
        assert tools is not None
        added = tools.call("1", "remind_me", {"delay_ns": 1, "payload": "tea"})
        tools.call("2", "cancel_reminder", added)

    room.provider.hooks["sent"] = change_its_mind
    room.say(ada, "hello")
    prompts = len(room.provider.prompts)

    room.settle(10)

    assert room.named("Ada").pending == ()
    assert len(room.provider.prompts) == prompts
    room.check_no_failures()


def test_a_runtime_that_closes_waits_for_no_reminder() -> None:
    room, ada, _ = parent_and_child()
    remind(room, ada, 5 * SECOND_NS)
    room.run(room.runtime.close())

    room.settle(10)

    assert room.named("Ada").pending == ()


def test_a_reminder_that_the_disk_has_refused_so_far_comes_in_time() -> None:
    room, ada, _ = parent_and_child()
    injector = fail_disk(room, "write *state.db* #1+ ENOSPC")
    remind(room, ada, 5 * SECOND_NS)
    assert not room.runtime.view().state_stopped
    injector.remove()
    room.settle(100)
    assert room.shown() == [("reminder", "tea")]
    room.check_no_failures()


def test_a_reminder_that_the_disk_has_refused_comes_after_the_next_boot() -> None:
    room, ada, _ = parent_and_child()
    fail_disk(room, "write *state.db* #1+ ENOSPC")
    remind(room, ada, 5 * SECOND_NS)
    room.reopen()
    room.settle(5)
    assert room.shown() == [("reminder", "tea")]


def test_a_cancelled_reminder_never_comes_although_the_disk_refuses_to_say_so() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    room.say(ada, script(("cancel_reminder", {"reminder_id": reminder_id})))
    prompts = len(room.provider.prompts)
    room.settle(100)
    room.reopen()
    room.settle(100)
    assert len(room.provider.prompts) == prompts
    assert row(room, reminder_id).resolution == "superseded"


def test_a_cancelled_reminder_never_comes_although_its_turns_had_failed() -> None:
    room, ada = opened(Options(most_attempts=1))
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    room.provider.fail("send")
    room.settle(5)
    assert status(room, reminder_id) == ("DEAD", 1)

    room.say(ada, script(("cancel_reminder", {"reminder_id": reminder_id})))
    room.settle(1)

    assert row(room, reminder_id).resolution == "superseded"
    with pytest.raises(AlreadyDecided):
        room.run(room.runtime.triggers.retry(reminder_id))


def test_a_cancelled_reminder_never_comes_although_its_failed_turn_was_not_recorded() -> None:
    room, ada = opened()
    reminder_id = remind(room, ada, 5 * SECOND_NS)

    async def stop_the_database() -> None:
        fail_disk(room, "write *state.db-wal #1+ EIO")
        raise ProviderError("no answer")

    room.provider.hooks["send"] = stop_the_database
    room.settle(5)
    room.provider.hooks.clear()
    assert room.runtime.view().state_stopped
    room.say(ada, script(("cancel_reminder", {"reminder_id": reminder_id})))
    room.settle(1)
    prompts = len(room.provider.prompts)

    report = room.reopen().report
    room.settle(100)

    assert (report.applied, report.reclaimed) == (1, [])
    assert len(room.provider.prompts) == prompts
    assert row(room, reminder_id).resolution == "superseded"


def test_a_reminder_is_not_cancelled_in_the_turn_that_it_has_caused() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, SECOND_NS)

    refused: list[JsonObject] = []

    async def change_its_mind() -> None:
        tools = room.provider.tools
        assert tools is not None
        refused.append(tools.call("1", "cancel_reminder", {"reminder_id": reminder_id}))

    room.provider.hooks["sent"] = change_its_mind
    room.settle(1)
    assert room.shown() == [("reminder", "tea")]
    assert refused == [{"error": f"there is no reminder {reminder_id!r}"}]
    room.check_no_failures()


def test_a_reminder_is_counted_from_the_clock_that_does_not_step_back() -> None:
    room, ada, _ = parent_and_child()
    room.world.clock.step_wall(-3600 * SECOND_NS)
    remind(room, ada, 5 * SECOND_NS)
    assert room.shown() != [("reminder", "tea")]
    room.settle(5)
    assert room.shown() == [("reminder", "tea")]


def test_a_trigger_of_an_agent_is_counted_from_the_clock_that_does_not_step_back() -> None:
    room, ada, _ = parent_and_child()
    room.settle(60)
    room.world.clock.step_wall(-3600 * SECOND_NS)
    room.say(ada, script(("emit", {"payload": "tea", "delay_ns": 5 * SECOND_NS})))
    room.settle(4)
    assert [kind for kind, _ in room.shown()] == ["text"]
    room.settle(1)
    assert [kind for kind, _ in room.shown()] == ["trigger"]


def test_a_reminder_survives_a_later_turn_and_a_kill_while_the_disk_refuses_its_row() -> None:
    room, ada, _ = parent_and_child()
    emit(room, ada)
    fail_disk(room, "write *state.db-wal #1+ ENOSPC")
    remind(room, ada, 5 * SECOND_NS)
    # The line of this turn has the watermark.
    room.say(ada, "hello")
    room.reopen()
    room.settle(5)
    assert room.shown() == [("reminder", "tea")]


def test_a_time_that_no_row_can_hold_is_refused() -> None:
    room, ada, _ = parent_and_child()
    room.world.clock.step_wall(7_950 * 365 * 86_400 * SECOND_NS)
    delay_ns = 99 * 365 * 86_400 * SECOND_NS
    room.say(ada, script(("remind_me", {"delay_ns": delay_ns, "payload": "tea"})))
    assert "is after the year 9999" in str(room.provider.results[-1]["error"])


# -- roots of older versions -------------------------------------------------------------


def old_root(*more: tuple[str, JsonObject]) -> Room:
    """A root of format 1 whose agent has set a reminder, which is known to be dispatched."""
    room = Room()
    reminder: JsonObject = {"reminder_id": ONE, "due_ns": DUE_NS, "payload": "tea"}
    room.put_session(
        ONE,
        [
            *created(ADA, "Ada"), completed("t1", reminders=[reminder]),
            completed("t2", dispatched=3), *more,
        ],
    )  # fmt: skip
    return room


DUE_NS = 1_700_000_000 * SECOND_NS + 5 * SECOND_NS


def test_a_root_of_format_1_gets_a_database_with_its_reminders() -> None:
    room = old_root()
    room.open()
    assert b'"format":2' in room.read("root.json")
    assert [each.id for each in open_rows(room)] == [ONE]
    room.settle(5)
    assert room.shown() == [("reminder", "tea")]
    room.reopen()
    assert open_rows(room) == []


def test_a_crash_while_a_root_gets_its_database_loses_no_reminder() -> None:
    room = old_root()
    fail_disk(room, "rename *root.json* #1 EIO")
    with pytest.raises(OSError, match="Input"):
        room.open()
    room.reopen()
    assert [each.id for each in open_rows(room)] == [ONE]


def test_a_reminder_that_an_older_version_has_delivered_does_not_come_again() -> None:
    delivered = enqueued(ONE, ADA, ADA, "reminder", "tea")
    room = old_root(delivered)
    room.open()
    room.settle(5)
    assert room.shown() == [("reminder", "tea")]
    assert len(room.provider.prompts) == 1
    assert open_rows(room) == []
    room.reopen()
    room.check_no_failures()


def test_a_root_of_format_1_whose_reminders_have_all_come_can_be_opened_with_a_database() -> None:
    room = old_root(enqueued(ONE, ADA, ADA, "reminder", "tea"))
    room.open()
    room.settle(5)
    trigger_id = emit(room, ADA, in_s=1_000)
    room.reopen()
    assert [each.id for each in open_rows(room)] == [trigger_id]


def test_a_reminder_that_a_person_has_discarded_is_not_emitted_again() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    durable = room.runtime._orchestrator.durable
    assert durable.state is not None
    assert durable.stores is not None
    triggers = durable.stores.triggers
    durable.state.transact(lambda each: triggers.cancel(each, reminder_id))
    for _ in range(2):
        room.reopen()
        room.settle(90_000)
    room.reopen()
    assert open_rows(room) == []


def open_rows(room: Room) -> list[Trigger]:
    found = room.run(room.runtime.triggers.open_rows())
    return [each for each in found if isinstance(each, Trigger)]


def test_a_reminder_that_is_cancelled_while_it_waits_for_its_log_never_comes() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    agent = room.runtime._orchestrator.agents[ada]
    cancel = script(("cancel_reminder", {"reminder_id": reminder_id}))

    async def hold_the_log_until_it_is_due() -> None:
        await agent.log.lock.acquire()
        room.world.loop.call_later(6, agent.log.lock.release)

    # The commit of the turn waits in front of the reminder.
    room.provider.hooks["sent"] = hold_the_log_until_it_is_due
    room.say(ada, cancel)
    prompts = len(room.provider.prompts)

    room.settle(10)

    assert len(room.provider.prompts) == prompts
    room.check_no_failures()
