"""Turns that came to no end: the provider fails, or the disk refuses."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import NameTaken
from system.runtime import Options
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room, log_of, opened

# -- the provider fails ------------------------------------------------------------------


@pytest.mark.parametrize("call", ["send", "sent"])
def test_a_turn_that_the_provider_breaks_off_has_not_happened(call: str) -> None:
    # Planted bug R7: half an answer was kept as a whole one.
    room, ada = opened()
    room.provider.fail(call)

    message_id = room.say(ada, script(say="half"))

    assert room.events(room.session(ada))[-2:] == ["turn.start", "turn.failed"]
    assert room.lines(room.session(ada))[-1].data["reason"] == f"{call} failed"
    assert room.named("Ada").pending == (message_id,)
    assert room.named("Ada").turns == 0


def test_a_failed_turn_runs_again_after_a_second_in_a_conversation_taken_up_anew() -> None:
    room, ada = opened()
    room.provider.fail("send")
    room.say(ada, "hello")
    assert room.provider.asked == ["identities ", "create c1", "send c1", "stop c1"]

    room.settle(1)

    assert room.provider.asked[4:] == ["restore c1", "send c1", "sent c1"]
    assert room.named("Ada").pending == ()
    room.check_no_failures()


def test_the_pauses_double_up_to_a_minute() -> None:
    room, ada = opened()
    room.provider.fail("restore", 100)
    room.provider.fail("send")
    started_ns = room.world.clock.now_ns
    room.say(ada, "hello")
    moments = []

    async def note() -> None:
        moments.append((room.world.clock.now_ns - started_ns) // SECOND_NS)

    room.provider.hooks["restore"] = note
    room.settle(300)

    assert moments == [1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_effects_of_a_failed_turn_are_dropped_and_its_names_are_free() -> None:
    room, ada = opened()
    room.provider.fail("sent", 9)
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("send_message", {"to": "USER"})))

    room.create("Bob")

    assert room.to_user() == []


def test_a_provider_that_does_not_answer_in_time_has_failed() -> None:
    room, ada = opened(Options(turn_timeout_ns=5 * SECOND_NS))
    never = asyncio.Event()
    room.provider.hooks["send"] = never.wait
    room.say(ada, "hello")
    room.settle(4)
    assert room.named("Ada").running

    room.settle(1)

    assert room.lines(room.session(ada))[-1].data["reason"] == "no answer within 5 s"


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        (7, "the provider's answer is not text"),
        ("\ud800", "the provider's answer cannot be kept: "),
        ("x" * (16 << 20), "the provider's answer cannot be kept: "),
    ],
    ids=["no text", "lone surrogate", "too large"],
)
def test_an_answer_that_cannot_be_kept_is_a_failure(piece: object, reason: str) -> None:
    room, ada = opened()
    room.provider.pieces = [piece]

    room.say(ada, "hello")

    assert str(room.lines(room.session(ada))[-1].data["reason"]).startswith(reason)
    assert room.named("Ada").stopped == ""


def test_a_message_over_which_five_turns_failed_is_a_dead_letter_and_its_sender_is_informed() -> (
    None
):
    room, ada = opened()
    room.provider.fail("sent", 5)
    message_id = room.say(ada, "poison")
    room.settle(15)
    assert room.named("Ada").pending == (message_id,)

    room.settle(17)

    reason = "it was presented 5 times, and no turn came to its end"
    assert room.lines(room.session(ada))[-1].event == "message.dead"
    assert room.to_user() == [("error", {"reason": reason, "message_id": message_id})]
    assert room.named("Ada").pending == ()
    assert len(room.provider.prompts) == 5
    room.check_no_failures()


def test_the_other_messages_of_a_dead_one_are_shown_again() -> None:
    room, ada = opened()
    room.provider.fail("sent", 5)
    room.say(ada, "poison")
    room.settle(14)
    room.say(ada, "food")

    room.settle(60)

    assert room.shown() == [("text", "food")]
    assert room.named("Ada").turns == 1


def test_a_turn_whose_conversation_cannot_be_opened_was_never_shown() -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    room.provider.fail("restore", 6)
    room.say(ada, "hello")

    room.settle(63)

    assert room.named("Ada").pending == ()
    assert "message.dead" not in room.events(room.session(ada))


# -- the disk refuses --------------------------------------------------------------------


def test_a_turn_that_the_disk_has_no_room_for_runs_again_and_counts_as_not_shown() -> None:
    room, ada = opened()

    async def full() -> None:
        room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC)

    room.provider.hooks["sent"] = full
    room.say(ada, "hello")
    room.settle(300)
    assert len(room.provider.prompts) > 5
    assert room.events(room.session(ada)).count("turn.complete") == 0

    room.provider.hooks.clear()
    room.settle(60)

    assert room.named("Ada").turns == 1
    assert "message.dead" not in room.events(room.session(ada))
    room.check_no_failures()


def test_a_start_that_cannot_be_noted_asks_nobody() -> None:
    room, ada = opened()
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, nth=2)
    message_id = room.say(ada, "hello")
    assert room.provider.prompts == []
    assert room.named("Ada").pending == (message_id,)

    room.settle(1)

    assert len(room.provider.prompts) == 1


def test_a_failure_that_the_disk_refuses_is_written_once_with_the_next_start() -> None:
    room, ada = opened()
    room.provider.fail("send", 2)
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, nth=3)
    room.say(ada, "hello")
    assert room.events(room.session(ada))[-1] == "turn.start"
    assert room.agent(ada).history.presentations == {room.named("Ada").pending[0]: 1}

    room.settle(9)

    turns = [each for each in room.events(room.session(ada)) if each.startswith("turn.")]
    failed = ["turn.start", "turn.failed"]
    assert turns == [*failed, *failed, "turn.start", "turn.complete"]
    room.check_no_failures()


def test_delivered_lines_that_the_disk_refuses_are_left_out() -> None:
    room, ada = opened()

    async def third_append() -> None:
        room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, nth=2)

    room.provider.hooks["sent"] = third_append
    room.say(ada, "hello")

    assert room.events(room.session(ada))[-1] == "turn.complete"
    assert room.named("Ada").pending == ()


def stop_at_commit(room: Room, agent_id: str) -> None:
    async def fail() -> None:
        room.provider.hooks.clear()
        room.files.fail("fdatasync", log_of(room.session(agent_id)), errno.EIO)

    room.provider.hooks["sent"] = fail


def test_a_failed_barrier_stops_its_agent_and_nobody_else() -> None:
    room, ada = opened()
    bob = room.create("Bob")
    stop_at_commit(room, ada)
    room.say(ada, "hello")

    assert "its barrier failed" in room.named("Ada").stopped
    room.say(bob, "hello")
    assert room.named("Bob").turns == 1
    room.settle(60)
    assert not room.named("Ada").running
    assert len(room.provider.prompts) == 2
    room.check_no_failures()


def test_a_name_that_may_be_in_an_outbox_stays_taken_until_the_next_boot() -> None:
    room, ada = opened()
    stop_at_commit(room, ada)
    room.say(ada, script(("spawn_agent", {"name": "Bob"})))

    with pytest.raises(NameTaken):
        room.create("Bob")

    room.reopen()
    assert room.named("Bob").parent_id == ada


def test_a_failure_of_a_stopped_agent_is_not_written_down() -> None:
    room, ada = opened()

    async def stop() -> None:
        room.files.fail("fdatasync", log_of(room.session(ada)), errno.EIO)
        with pytest.raises(Exception, match="its barrier failed"):
            await room.runtime.send(ada, "more")

    room.provider.hooks["send"] = stop
    room.provider.fail("send")
    room.say(ada, "hello")

    assert room.events(room.session(ada)).count("turn.failed") == 0
    assert not room.named("Ada").running
    room.check_no_failures()


def test_what_keeps_an_agent_from_its_turn_is_shown_until_the_turn_has_happened() -> None:
    room, ada = opened()
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, nth=3)
    room.say(ada, "hello")
    assert "no space left" in room.named("Ada").trouble

    room.settle(1)

    assert room.named("Ada").trouble == ""
    assert room.named("Ada").turns == 1
