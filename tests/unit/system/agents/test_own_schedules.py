"""Schedules of agents: kept and ended by the lines of their turns."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo

import pytest

from system.ports import JsonObject
from tests.unit.system.agents.emitting import fail_disk
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, opened
from tests.unit.system.agents.test_tasks import waiting


def test_an_agent_keeps_a_schedule_and_ends_it() -> None:
    room, ada = opened()
    call: JsonObject = {"kind": "every", "spec": "60", "payload": "tea", "priority": 25}
    room.say(ada, script(("schedule", call)))
    schedule_id = room.provider.results[-1]["schedule_id"]
    room.settle(125)
    assert [kind for kind, _ in room.shown()] == ["trigger"]
    assert len(room.provider.prompts) == 3
    room.say(ada, script(("unschedule", {"schedule_id": schedule_id})))
    assert waiting(room) == []
    assert room.run(room.runtime.schedules.living()) == []


def test_a_schedule_that_its_own_turn_ends_is_not_kept() -> None:
    room, ada = opened()

    async def schedule() -> None:
        room.provider.hooks.clear()
        tools = room.provider.tools
        assert tools is not None
        kept = tools.call("1", "schedule", {"kind": "every", "spec": "60"})
        assert tools.call("2", "unschedule", kept) == {}

    room.provider.hooks["sent"] = schedule
    room.say(ada, "schedule")
    assert room.run(room.runtime.schedules.living()) == []


def test_a_schedule_whose_end_a_full_disk_delays_does_not_fire() -> None:
    room, ada = opened()
    room.say(ada, script(("schedule", {"kind": "every", "spec": "60"})))
    schedule_id = room.provider.results[-1]["schedule_id"]
    room.settle(59)

    async def until_it_is_due() -> None:
        room.provider.hooks.clear()
        await room.host.clock.sleep(2 * SECOND_NS)
        await room.runtime.send(ada, "hello")
        fail_disk(room, "write *state.db-wal #1 ENOSPC")

    room.provider.hooks["send"] = until_it_is_due
    room.say(ada, script(("unschedule", {"schedule_id": schedule_id})))
    room.settle(100)

    assert room.shown() == [("text", "hello")]
    assert waiting(room) == []
    room.check_no_failures()


def test_an_agent_does_not_end_the_schedule_of_another_one() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("schedule", {"kind": "every", "spec": "60"})))
    schedule_id = room.provider.results[-1]["schedule_id"]
    room.say(bob, script(("unschedule", {"schedule_id": schedule_id})))
    assert len(room.run(room.runtime.schedules.living())) == 1
    room.say(bob, script(("unschedule", {"schedule_id": "unknown"})))
    room.check_no_failures()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"kind": "often"}, "'often' is not a valid ScheduleKind"),
        ({"catch_up": "never"}, "'never' is not a valid CatchUp"),
        ({"kind": "cron", "spec": "0 0 30 2 *"}, "matches no time"),
        ({"kind": "cron", "spec": "* * * * *", "zone": "Mars"}, "Mars"),
        ({"spec": "0"}, "0"),
        ({"spec": 60}, "spec=60 is not a text"),
        ({"priority": 1}, "priority=1 is not from 20 to 40"),
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused(arguments: JsonObject, error: str) -> None:
    room, ada = opened()
    room.say(ada, script(("schedule", {"kind": "every", "spec": "60", **arguments})))
    assert error in str(room.provider.results[-1]["error"])
    assert not room.exists("state.db")


class NoZones:
    """A machine whose data of time zones were removed."""

    def zone(self, name: str) -> tzinfo:
        raise KeyError(name)


def test_an_agent_with_a_schedule_of_an_unknown_zone_still_gets_messages() -> None:
    room, ada = opened()
    room.say(ada, script(("schedule", {"kind": "cron", "spec": "* * * * *", "zone": "UTC"})))
    room.kill()
    room.host = replace(room.host, zones=NoZones())
    room.open()
    room.settle(61)
    room.say(ada, "hello")
    assert room.shown() == [("text", "hello")]
    assert room.named("Ada").pending == ()
    [(kind, report)] = room.to_user()
    assert kind == "system"
    assert isinstance(report, dict)
    assert (report["status"], report["source"]) == ("FAILED", "SCHEDULED")
    room.check_no_failures()


def test_an_agent_without_its_provider_shows_why_it_takes_no_turn() -> None:
    room, ada = opened()
    room.kill()
    room.providers = {"another": room.provider}
    room.open()
    room.say(ada, "hello")
    assert room.named("Ada").trouble == "provider 'scripted' is not there; known are another"
    room.check_no_failures()
