"""The tools for waiting: reminders and subscriptions."""

from __future__ import annotations

import pytest

from system.ports import Json
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import NEAR, Family
from tests.unit.system.agents.room import SECOND_NS, Room


def test_a_reminder_is_due_after_its_delay(family: Family, room: Room) -> None:
    turn = family.turn("Eve")
    before_ns = room.world.clock.wall_ns()

    result = turn.call("remind_me", delay_ns=SECOND_NS, payload="tea")

    (added,) = turn.draft.reminders
    # The clock of the simulated world moves on by a microsecond at each of two readings.
    assert added.due_ns == before_ns + SECOND_NS + 2_000
    assert (added.reminder_id, added.payload) == (result["reminder_id"], "tea")


@pytest.mark.parametrize("delay_ns", [-1, 1.5, True, "1", None])
def test_a_delay_is_a_whole_number_of_nanoseconds_from_now_on(
    family: Family, delay_ns: Json
) -> None:
    turn = family.turn("Eve")

    refusal = turn.error("remind_me", delay_ns=delay_ns, payload=None)

    assert refusal == f"delay_ns={delay_ns!r} is not a number of nanoseconds"
    assert turn.draft.reminders == []


def test_a_reminder_whose_payload_cannot_be_written_down_is_refused(family: Family) -> None:
    turn = family.turn("Eve")

    assert "finite" in turn.error("remind_me", delay_ns=1, payload=float("nan"))
    assert turn.draft.reminders == []


def test_a_reminder_of_this_turn_or_of_an_earlier_one_is_cancelled_once(
    family: Family, room: Room
) -> None:
    room.say(family.id("Eve"), script(("remind_me", {"delay_ns": SECOND_NS, "payload": 1})))
    earlier = room.provider.results[-1]["reminder_id"]
    turn = family.turn("Eve")
    own = turn.call("remind_me", delay_ns=1, payload=2)["reminder_id"]

    assert turn.call("cancel_reminder", reminder_id=earlier) == {}
    assert turn.call("cancel_reminder", reminder_id=own) == {}

    assert turn.draft.cancelled == [earlier, own]
    assert turn.error("cancel_reminder", reminder_id=own) == f"there is no reminder {own!r}"
    assert turn.error("cancel_reminder", reminder_id=7) == "reminder_id=7 is not a text"


def test_a_subscription_of_this_turn_or_of_an_earlier_one_is_given_up_once(
    family: Family, room: Room
) -> None:
    room.say(family.id("Eve"), script(("subscribe", {"name": "Bob"})))
    earlier = room.provider.results[-1]["subscription_id"]
    turn = family.turn("Eve")
    own = turn.call("subscribe", name="Ada")["subscription_id"]

    assert turn.call("unsubscribe", subscription_id=earlier) == {}
    assert turn.call("unsubscribe", subscription_id=own) == {}

    assert turn.draft.unsubscribed == [earlier, own]
    assert turn.error("unsubscribe", subscription_id=own) == f"there is no subscription {own!r}"
    assert turn.error("unsubscribe") == "subscription_id=None is not a text"


def test_nobody_subscribes_to_the_operator_nor_to_who_is_out_of_reach(family: Family) -> None:
    assert family.turn("Ada").error("subscribe", name="USER") == "USER never ends"
    assert family.turn("Ada").error("subscribe", name="Zoe") == f"'Zoe' {NEAR}"
