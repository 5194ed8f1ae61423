"""Activities of turns: in the outbox of a line, performed after it, and answered by a message."""

from __future__ import annotations

from asyncio import Event
from typing import cast

import pytest

from system.durable.errors import (
    BadActivity,
)
from system.ports import Action, EffectRefused, Json, JsonObject, Performed, SideEffectClass
from system.recording.replays.replay import replay
from tests.unit.system.agents.acting import (
    FLY,
    MAIL,
    TO_ANNA,
    acting,
    activities,
    in_turn,
    opened,
    outcome,
    perform,
)  # fmt: skip
from tests.unit.system.agents.emitting import fail_disk
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room


def statuses(room: Room) -> list[tuple[str, int]]:
    return [(str(row.status), row.attempts) for row in activities(room)]


def test_an_action_is_performed_behind_the_line_and_answered_by_a_message() -> None:
    room, ada = opened(Performed("ref-1", {"id": 7}))
    key = perform(room, ada)
    session_id, turn_id = room.session(ada), room.lines(room.session(ada))[3].data["turn_id"]
    assert key == f"activity:{session_id}:{turn_id}:0"
    assert room.effects.calls == [("mail", key, {"to": "Anna"})]
    assert room.shown() == [
        ("activity", {
            "activity_id": key, "action": "mail", "status": "DONE", "provider_ref": "ref-1",
            "result": {"id": 7}, "reason": None, "decided_by": None,
        })
    ]  # fmt: skip
    assert statuses(room) == [("DONE", 1)]
    assert room.named("Ada").pending == ()
    room.check_no_failures()


def test_a_turn_that_fails_performs_nothing() -> None:
    room, ada = opened()
    room.provider.fail("sent")
    room.say(ada, script(("perform", TO_ANNA)))
    assert room.effects.calls == []
    room.settle(1)
    assert len(room.effects.calls) == 1


def test_each_call_is_an_activity_of_its_own() -> None:
    room, ada = opened()
    room.say(ada, script(("perform", TO_ANNA), ("perform", TO_ANNA)))
    keys = [key for _, key, _ in room.effects.calls]
    assert [key.rpartition(":")[2] for key in keys] == ["0", "1"]


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        ({"action": "fly"}, FLY),
        ({"action": 7}, "action=7 is not a text"),
        ({"action": "read"}, "action='read' is READ_ONLY: its provider has to wait for it"),
        ({"action": "mail", "arguments": [1]}, "arguments=[1] is not an object"),
        ({"action": "mail", "task_id": "t"}, "there is no open task 't'"),
    ],
)
def test_a_call_that_cannot_be_carried_out_is_refused(call: JsonObject, refusal: str) -> None:
    room, ada = opened()
    room.say(ada, script(("perform", call)))
    assert room.provider.results == [{"error": refusal}]
    assert not room.exists("state.db")


def test_arguments_that_no_line_takes_are_refused() -> None:
    room, ada = opened()
    [result] = in_turn(room, ada, action="mail", arguments={"text": "x" * (1 << 20)})
    assert "is over the limit" in str(result["error"])


# -- crashes -----------------------------------------------------------------------------


def test_an_activity_that_the_disk_has_refused_so_far_is_performed_at_the_boot() -> None:
    room, ada = opened()
    fail_disk(room, "write *state.db* #1+ ENOSPC")
    perform(room, ada)
    room.settle(100)
    assert room.effects.calls == []
    room.reopen()
    room.settle()
    assert len(room.effects.calls) == 1
    assert room.shown()[0][0] == "activity"


def test_an_attempt_that_a_crash_interrupts_is_not_repeated_blindly() -> None:
    room, ada = opened()
    room.effects.answers = [lambda: Event().wait()]
    key = perform(room, ada)
    assert statuses(room) == [("INTENT", 1)]
    room.reopen()
    room.settle()
    assert len(room.effects.calls) == 1
    assert statuses(room) == [("UNCERTAIN", 1)]
    assert outcome(room, place=-1)["status"] == "UNCERTAIN"
    assert [message.message_id for message in room.runtime.view().user] == [f"{key}.uncertain"]


def test_an_attempt_that_a_crash_interrupts_is_repeated_with_its_key_where_that_is_safe() -> None:
    room, ada = opened()
    room.effects.answers = [lambda: Event().wait()]
    key = perform(room, ada, action="pay")
    room.reopen()
    room.settle()
    assert [each[1] for each in room.effects.calls] == [key, key]
    assert statuses(room) == [("DONE", 2)]


def test_an_outcome_whose_message_a_crash_has_prevented_is_reported_by_the_boot() -> None:
    room, ada = opened()
    key = perform(room, ada)
    room.reopen()
    assert len(room.effects.calls) == 1
    messages = [line.data for line in room.lines(room.session(ada)) if "kind" in line.data]
    assert [data["message_id"] for data in messages if data["kind"] == "activity"] == [
        f"{key}.result"
    ]


def test_effects_begin_when_turns_may_begin() -> None:
    room, ada = opened()
    room.effects.answers = [lambda: Event().wait()]
    perform(room, ada, action="pay")
    room.reopen(start=False)
    room.settle()
    assert len(room.effects.calls) == 1
    room.start()
    room.settle()
    assert len(room.effects.calls) == 2


def test_an_action_that_is_not_registered_any_more_is_failed() -> None:
    room, ada = opened()
    fail_disk(room, "write *state.db* #1+ ENOSPC")
    perform(room, ada)
    room.effects.known = []
    room.reopen()
    room.settle()
    assert statuses(room) == [("FAILED", 1)]
    assert room.effects.calls == []


# -- outcomes ----------------------------------------------------------------------------


def test_a_refusal_is_an_answer() -> None:
    room, ada = opened(EffectRefused("no such address"))
    perform(room, ada)
    payload = outcome(room)
    assert (payload["status"], payload["reason"]) == ("FAILED", "no such address")
    assert room.to_user() == []


def test_a_provider_that_deduplicates_is_asked_again_after_a_pause() -> None:
    room, ada = opened(OSError("reset"))
    perform(room, ada, action="pay")
    assert statuses(room) == [("INTENT", 1)]
    room.settle(40)
    assert statuses(room) == [("DONE", 2)]


def test_an_attempt_that_takes_too_long_is_given_up() -> None:
    room, ada = opened()
    room.effects.answers = [lambda: Event().wait()]
    perform(room, ada)
    room.settle(MAIL.timeout_ns // SECOND_NS)
    assert statuses(room) == [("UNCERTAIN", 1)]


@pytest.mark.parametrize("result", [object(), float("nan"), "x" * (1 << 20), Performed])
def test_a_result_that_no_message_takes_is_left_out(result: object) -> None:
    room, ada = opened(Performed("ref", cast("Json", result)))
    perform(room, ada)
    [row] = activities(room)
    assert (row.status, row.result, row.provider_ref) == ("DONE", None, "ref")
    assert (row.reason or "").startswith("its result is left out: ")


def test_an_answer_that_is_no_result_is_unknown() -> None:
    room, ada = opened("done")
    perform(room, ada)
    assert statuses(room) == [("UNCERTAIN", 1)]


def test_the_outcome_for_an_agent_that_has_ended_is_kept_in_the_ledger_only() -> None:
    room, ada = opened()
    gate = Event()

    async def later() -> None:
        await gate.wait()

    room.effects.answers = [later]
    room.say(ada, script(("perform", {**TO_ANNA, "action": "pay"}), ("complete", {"result": 1})))
    gate.set()
    room.settle()
    assert statuses(room) == [("FAILED", 1)]
    assert room.to_user() == [("response", 1)]
    room.reopen()
    room.check_no_failures()


# -- the end of a runtime ----------------------------------------------------------------


def test_closing_waits_for_an_attempt_that_is_under_way() -> None:
    room, ada = opened()
    gate = Event()
    room.effects.answers = [gate.wait]
    perform(room, ada)
    closing = room.world.loop.create_task(room.runtime.close())
    room.settle()
    assert not closing.done()
    gate.set()
    room.run(closing)
    room.reopen()
    assert statuses(room) == [("FAILED", 1)]


def test_closing_waits_for_no_pause_between_attempts() -> None:
    room, ada = opened(OSError("reset"))
    perform(room, ada, action="pay")
    room.run(room.runtime.close())
    room.reopen()
    room.settle()
    assert statuses(room) == [("DONE", 2)]
    room.check_no_failures()


def test_a_turn_that_ends_while_the_runtime_closes_performs_in_the_next_boot() -> None:
    room, ada = opened()
    gate = Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("perform", TO_ANNA)))
    closing = room.world.loop.create_task(room.runtime.close())
    room.settle()
    gate.set()
    room.run(closing)
    assert room.effects.calls == []
    room.reopen()
    room.settle()
    assert len(room.effects.calls) == 1


# -- callers beside the agents -----------------------------------------------------------


def test_two_actions_of_one_name_are_refused_before_anything_is_touched() -> None:
    room = acting()
    room.effects.known = [MAIL, MAIL]
    with pytest.raises(BadActivity, match="action='mail' is registered twice"):
        room.open()
    assert not room.exists("root.json")


def test_an_action_of_another_type_is_refused_before_anything_is_touched() -> None:
    room = acting()
    room.effects.known = [MAIL, cast("Action", ("pay", "IRREVERSIBLE"))]
    with pytest.raises(BadActivity, match=r"\('pay', 'IRREVERSIBLE'\) is not an Action"):
        room.open()
    assert not room.exists("root.json")


def test_a_host_without_actions_refuses_each() -> None:
    room = Room()
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("perform", TO_ANNA)))
    [result] = room.provider.results
    assert "action='mail' is not registered, known are: none" in str(result["error"])


def test_a_replay_performs_no_effect_and_writes_nothing() -> None:
    room, ada = opened()
    perform(room, ada)
    store = room.runtime.records
    assert store is not None
    performed, shown = len(room.effects.calls), len(room.provider.prompts)
    room.files.calls.clear()
    for execution_id in store.list_all():
        assert replay(store, execution_id).status == "success"
    assert (len(room.effects.calls), len(room.provider.prompts)) == (performed, shown)
    assert performed == 1
    writes = ("open-create", "append", "pwrite", "replace", "unlink", "mkdir", "fsync", "fdatasync")
    assert not [call for call in room.files.calls if call.startswith(writes)]


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_record_of_a_turn_says_that_its_effects_cannot_be_undone(is_killed: bool) -> None:
    room, ada = opened()
    turn_id = perform(room, ada).split(":")[2]
    if is_killed:
        room.reopen()
    store = room.runtime.records
    assert store is not None
    classes = {
        cast("JsonObject", record.envelope["routingMetadata"])["turn_id"]: record.side_effects
        for record in map(store.load, store.list_all())
    }
    assert classes.pop(turn_id) is SideEffectClass.IRREVERSIBLE
    assert set(classes.values()) == {SideEffectClass.REVERSIBLE}
