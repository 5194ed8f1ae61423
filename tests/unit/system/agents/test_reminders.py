"""Reminders: due once, in this life or in the next one."""

from __future__ import annotations

from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, Room


def remind(room: Room, agent_id: str, delay_ns: int) -> str:
    room.say(agent_id, play(("remind_me", {"delay_ns": delay_ns, "payload": "tea"})))
    return str(room.provider.results[-1]["reminder_id"])


def test_a_reminder_comes_when_its_time_has_come() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    room.settle(4)
    assert room.shown() != [("reminder", "tea")]

    room.settle(1)

    assert room.shown() == [("reminder", "tea")]
    assert room.lines(room.session(ada))[-4].data["message_id"] == reminder_id
    room.check_no_failures()


def test_a_reminder_of_the_life_before_comes_all_the_same_and_once() -> None:
    # Hole R21: reminders were volatile.
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
    room.say(ada, play(("cancel_reminder", {"reminder_id": reminder_id})))
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


def test_a_reminder_that_is_cancelled_while_it_waits_for_its_log_never_comes() -> None:
    room, ada, _ = parent_and_child()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    agent = room.runtime._orchestrator.agents[ada]
    cancel = play(("cancel_reminder", {"reminder_id": reminder_id}))

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
