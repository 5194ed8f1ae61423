"""The operator's calls about activities: programs that perform them, persons that decide."""

from __future__ import annotations

from asyncio import Task, create_task, gather, sleep
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest

from system.durable.activity import Activity, Decision
from system.durable.errors import (
    AlreadyDecided,
    BadActivity,
    KeyReused,
    RowHidden,
    UnknownActivity,
    UnknownTrigger,
)
from system.errors import Closed, NotPlainJson, NotStarted
from system.ports import JsonObject, Performed
from tests.unit.system.agents.acting import acting, activities, opened, outcome, perform
from tests.unit.system.agents.emitting import DAY
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS


async def wait_passes(number: int) -> None:
    """Let the event loop run all tasks that are ready so many times."""
    for _ in range(number):
        await sleep(0)


def test_the_decision_of_a_person_reaches_the_agent() -> None:
    room, ada = opened(OSError("reset"), OSError("reset"))
    keys = [perform(room, ada), perform(room, ada)]
    room.reopen(start=False)
    room.run(room.runtime.activities.resolve(keys[0], Decision.PERFORMED, "Bob"))
    room.run(room.runtime.activities.resolve(keys[1], Decision.AGAIN, "Bob"))
    room.reopen()
    room.settle()
    assert len(room.effects.calls) == 3
    outcomes = [payload for kind, payload in room.shown(-2) + room.shown() if kind == "activity"]
    shown = {
        str(each["activity_id"]): (each["status"], each["decided_by"])
        for each in outcomes
        if isinstance(each, dict)
    }
    assert shown == {keys[0]: ("DONE", "Bob"), keys[1]: ("DONE", None)}


def test_a_person_decides_about_an_activity_of_a_running_runtime() -> None:
    room, ada = opened(OSError("reset"), OSError("reset"))
    keys = [perform(room, ada), perform(room, ada)]
    resolve = room.runtime.activities.resolve
    row = room.run(resolve(keys[0], Decision.PERFORMED, "Bob", "ref-1"))
    assert (row.status, row.provider_ref, row.decided_by) == ("DONE", "ref-1", "Bob")
    room.settle()
    assert outcome(room)["decided_by"] == "Bob"
    assert room.run(resolve(keys[1], Decision.AGAIN, "Bob")).status == "INTENT"
    room.settle()
    assert len(room.effects.calls) == 3
    assert outcome(room)["status"] == "DONE"
    with pytest.raises(AlreadyDecided):
        room.run(resolve(keys[0], Decision.AGAIN, "Eve"))


def test_a_decision_before_the_start_is_carried_out_from_the_start_on() -> None:
    room, _ = opened(OSError("reset"))
    room.run(room.runtime.activities.perform("activity:t:1", "mail", {}))
    room.reopen(start=False)
    row = room.run(room.runtime.activities.resolve("activity:t:1", Decision.AGAIN, "Bob"))
    room.settle()
    assert (row.status, len(room.effects.calls)) == ("INTENT", 1)
    room.start()
    room.settle()
    assert [row.status for row in activities(room)] == ["DONE"]
    assert len(room.effects.calls) == 2


def test_a_call_before_the_start_is_refused_and_changes_nothing() -> None:
    room = acting()
    room.open(start=False)
    with pytest.raises(NotStarted, match="not started"):
        room.run(room.runtime.activities.perform("activity:t:1", "mail", {}))
    assert not room.exists("state.db")
    room.start()
    assert room.run(room.runtime.activities.perform("activity:t:1", "mail", {})).status == "DONE"


def test_each_outcome_is_reported_however_often_a_person_lets_it_be_performed_again() -> None:
    room, ada = opened(*[OSError("reset")] * 3)
    key = perform(room, ada)
    for _ in range(3):
        room.run(room.runtime.activities.resolve(key, Decision.AGAIN, "Bob"))
        room.settle()
    assert outcome(room)["status"] == "DONE"
    assert [message.message_id for message in room.runtime.view().user] == [
        f"{key}.uncertain", f"{key}.uncertain.1.2", f"{key}.uncertain.1.4",
    ]  # fmt: skip


def test_a_decision_is_carried_out_whenever_it_comes_while_a_program_repeats_its_call() -> None:
    room, _ = opened()
    calls = room.runtime.activities

    async def decide(key: str, passes: int) -> None:
        await wait_passes(passes)
        await calls.resolve(key, Decision.AGAIN, "Bob")

    async def meanwhile(key: str, passes: int) -> Activity:
        deciding = create_task(decide(key, passes))
        row = await calls.perform(key, "mail", {})
        await deciding
        return row

    seen = set()
    for passes in range(20):
        key = f"activity:t:{passes}"
        room.effects.answers = [OSError("reset")]
        room.run(calls.perform(key, "mail", {}))
        seen.add(str(room.run(meanwhile(key, passes)).status))
        room.settle()
        assert room.run(calls.perform(key, "mail", {})).status == "DONE"
        assert [each for _, each, _ in room.effects.calls].count(key) == 2
    assert seen == {"UNCERTAIN", "DONE"}
    room.check_no_failures()


@pytest.mark.parametrize("pause", range(4))
def test_a_decision_that_shares_the_commit_of_an_outcome_is_carried_out(pause: int) -> None:
    room, _ = opened()
    calls = room.runtime.activities

    async def fill_commits(deciding: Task[None]) -> None:
        # While one commit is under way, the works of the next one come together.
        while not deciding.done():
            await calls.undecided()

    async def decide_twice(key: str, passes: int) -> None:
        await calls.resolve(key, Decision.AGAIN, "Bob")
        await wait_passes(passes)
        with suppress(AlreadyDecided):
            await calls.resolve(key, Decision.AGAIN, "Bob")
            decided.append(key)

    async def meanwhile(key: str, passes: int) -> None:
        deciding = create_task(decide_twice(key, passes))
        await gather(deciding, fill_commits(deciding))

    decided: list[str] = []
    for passes in range(30):
        key = f"activity:t:{passes}"
        room.effects.answers = [OSError("reset"), lambda: wait_passes(pause)]
        room.run(calls.perform(key, "mail", {}))
        room.run(meanwhile(key, passes))
        room.settle()
        performed = [each for _, each, _ in room.effects.calls].count(key)
        assert performed == (3 if key in decided else 2)
    assert decided
    room.check_no_failures()


def test_a_call_ends_when_no_attempt_can_be_made_in_this_boot() -> None:
    room, _ = opened()
    room.effects.known += room.effects.known
    with pytest.raises(Closed, match="the next boot goes on with it"):
        room.run(room.runtime.activities.perform("activity:t:1", "mail", {}))
    assert room.effects.calls == []


def test_nothing_is_to_be_decided_in_a_root_without_a_database() -> None:
    room, _ = opened()
    with pytest.raises(UnknownActivity):
        room.run(room.runtime.activities.resolve("activity:t:1", Decision.AGAIN, "Bob"))
    with pytest.raises(UnknownTrigger):
        room.run(room.runtime.triggers.discard("nothing"))


def test_a_caller_gets_the_outcome_and_the_same_one_again_after_a_crash() -> None:
    room, _ = opened(Performed("ref-1", [1]))
    call: JsonObject = {"to": "Anna"}
    row = room.run(room.runtime.activities.perform("activity:t:1", "mail", call))
    assert (row.status, row.provider_ref, row.result) == ("DONE", "ref-1", [1])
    room.reopen()
    room.world.clock.advance(3_601 * SECOND_NS)
    again = room.run(room.runtime.activities.perform("activity:t:1", "mail", call))
    assert (again.status, again.result) == ("DONE", [1])
    assert len(room.effects.calls) == 1
    with pytest.raises(KeyReused):
        room.run(room.runtime.activities.perform("activity:t:1", "mail", {"to": "Eve"}))


def test_a_caller_is_refused_what_needs_no_row() -> None:
    room, _ = opened()
    with pytest.raises(BadActivity, match="is READ_ONLY and needs no row"):
        room.run(room.runtime.activities.perform("activity:t:1", "read", {}))
    with pytest.raises(BadActivity, match="not registered"):
        room.run(room.runtime.activities.perform("activity:t:1", "fly", {}))


def test_a_call_is_not_performed_again_when_its_row_has_gone_with_its_task() -> None:
    room, ada = opened()
    room.say(ada, script(("begin_task", {"todos": []})))
    task_id = str(room.provider.results[-1]["task_id"])
    perform_in_task = partial(room.runtime.activities.perform, action="mail", arguments={})
    room.run(perform_in_task("activity:t:1", task_id=task_id))
    end: JsonObject = {"task_id": task_id, "event": "end", "status": "DONE"}
    room.say(ada, script(("checkpoint", end)))
    assert room.run(perform_in_task("activity:t:1", task_id=task_id)).status == "DONE"

    room.world.clock.advance(DAY * SECOND_NS)
    room.reopen()
    perform_in_task = partial(room.runtime.activities.perform, action="mail", arguments={})
    assert activities(room) == []
    for key, refused_id, state in (
        ("activity:t:1", task_id, "DONE"), ("activity:t:2", "a mistake", "unknown"),
    ):  # fmt: skip
        with pytest.raises(BadActivity, match=f"task_id='{refused_id}' is {state}"):
            room.run(perform_in_task(key, task_id=refused_id))
    assert len(room.effects.calls) == 1


def test_an_activity_that_its_index_has_lost_is_not_performed_again() -> None:
    room, _ = opened()
    for key in ("activity:t:1", "activity:t:2"):
        room.run(room.runtime.activities.perform(key, "mail", {}))
    room.run(room.runtime.close())
    # SQLite keeps a key in its row, and behind it in the index of the keys.
    before, after = room.read("state.db").rsplit(b"activity:t:1", 1)
    room.write("state.db", before + b"activity:t:0" + after)

    room.reopen()
    calls = room.runtime.activities
    with pytest.raises(RowHidden, match="row=activity:t:1 is not found by its key; run REINDEX"):
        room.run(calls.perform("activity:t:1", "mail", {}))
    for key in ("activity:t:2", "activity:t:3"):
        assert room.run(calls.perform(key, "mail", {})).status == "DONE"
    assert len(room.effects.calls) == 3


def test_a_value_of_a_wrong_type_is_refused_and_damages_no_row() -> None:
    room, _ = opened(OSError("reset"), Performed(None, None))
    calls = cast("Any", room.runtime.activities)
    with pytest.raises(NotPlainJson, match="task_id: 5 is not a text"):
        room.run(calls.perform("activity:t:1", "mail", {}, task_id=5))
    row = room.run(calls.perform("activity:t:1", "mail", {}))
    for error, decision, by, reference in (
        (NotPlainJson, Decision.PERFORMED, 5, None), (NotPlainJson, Decision.PERFORMED, None, None),
        (NotPlainJson, Decision.PERFORMED, "Bob", 5), (BadActivity, "maybe", "Bob", None),
    ):  # fmt: skip
        with pytest.raises(error):
            room.run(calls.resolve(row.idem_key, decision, by, reference))
        assert room.run(calls.undecided()) == [row]

    room.run(calls.resolve(row.idem_key, "again", "Bob"))
    room.settle()

    assert len(room.effects.calls) == 2
    assert room.run(calls.perform("activity:t:1", "mail", {})).status == "DONE"


def test_a_caller_sees_what_a_person_has_to_decide() -> None:
    room, _ = opened(OSError("reset"))
    assert room.run(room.runtime.activities.undecided()) == []
    row = room.run(room.runtime.activities.perform("activity:t:1", "mail", {}))
    assert row.status == "UNCERTAIN"
    assert room.run(room.runtime.activities.undecided()) == [row]
    assert [message.message_id for message in room.runtime.view().user] == [
        "activity:t:1.uncertain"
    ]


def test_a_caller_whose_runtime_closes_gets_the_outcome_from_the_next_one() -> None:
    room, _ = opened(OSError("reset"))
    calls = room.runtime.activities
    waiting = room.world.loop.create_task(calls.perform("activity:t:1", "pay", {}))
    room.settle()
    room.run(room.runtime.close())
    with pytest.raises(Closed, match="the next boot goes on with it"):
        room.run(waiting)
    room.reopen()
    row = room.run(room.runtime.activities.perform("activity:t:1", "pay", {}))
    assert (row.status, row.attempts) == ("DONE", 2)
