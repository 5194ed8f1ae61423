"""Turns that the disk refused: nothing was presented by them, in this lifetime or a later one."""

from __future__ import annotations

import errno

from tests.unit.system.agents.room import Room, log_of, opened


def refuse_commits(room: Room, agent_id: str, appends: int = 1) -> None:
    """Let there be no room for the line of a turn, nor for the ``appends - 1`` after it."""
    path = log_of(room.session(agent_id))

    async def full() -> None:
        for _ in range(appends):
            room.files.fail("append", path, errno.ENOSPC)

    room.provider.hooks["sent"] = full


def test_a_turn_that_the_disk_refused_says_that_it_does_not_count() -> None:
    room, ada = opened()
    refuse_commits(room, ada)

    room.say(ada, "hello")

    failed = room.lines(room.session(ada))[-1]
    assert (failed.event, failed.data["uncounted"]) == ("turn.failed", True)


def test_a_turn_that_the_provider_broke_off_counts() -> None:
    room, ada = opened()
    room.provider.fail("send")

    message_id = room.say(ada, "hello")

    assert "uncounted" not in room.lines(room.session(ada))[-1].data
    assert room.agent(ada).history.presentations == {message_id: 1}


def test_a_message_that_the_disk_had_no_room_for_is_not_dead_at_the_next_boot() -> None:
    room, ada = opened()
    refuse_commits(room, ada)
    room.say(ada, "hello")
    room.settle(300)
    assert len(room.provider.prompts) > 5
    room.provider.hooks.clear()

    room.reopen()
    room.settle(1)

    assert room.named("Ada").turns == 1
    assert "message.dead" not in room.events(room.session(ada))


def test_a_turn_that_the_disk_refused_is_not_reported_as_lost() -> None:
    room, ada = opened()
    refuse_commits(room, ada)
    message_id = room.say(ada, "hello")
    room.provider.hooks.clear()

    room.reopen(start=False)

    assert room.runtime.report.lost_turns == {}
    assert room.named("Ada").pending == (message_id,)


def test_turns_that_the_disk_refused_do_not_pile_up() -> None:
    room, ada = opened()
    refuse_commits(room, ada)

    room.say(ada, "hello")
    room.settle(300)

    assert room.agent(ada).history.open_turns == {}


def test_a_turn_whose_failure_has_no_room_either_does_not_count() -> None:
    room, ada = opened()
    refuse_commits(room, ada, appends=2)

    message_id = room.say(ada, "hello")

    assert room.events(room.session(ada))[-1] == "turn.start"
    assert room.agent(ada).history.open_turns == {}
    assert room.agent(ada).history.presentations == {message_id: 0}


def test_the_failure_that_had_no_room_is_written_with_the_next_turn() -> None:
    room, ada = opened()
    refuse_commits(room, ada, appends=2)
    room.say(ada, "hello")
    room.provider.hooks.clear()

    room.settle(2)

    lines = room.lines(room.session(ada))
    first, failed, second, complete = [line for line in lines if line.event.startswith("turn.")]
    assert [failed.event, second.event] == ["turn.failed", "turn.start"]
    assert failed.data["turn_id"] == first.data["turn_id"]
    assert failed.data["uncounted"] is True
    assert complete.data["turn_id"] == second.data["turn_id"]
