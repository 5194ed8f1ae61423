"""Triggers in turns: due, claimed, shown, settled."""

from __future__ import annotations

from asyncio import gather

import pytest

from system.agents.durable_work import TRANSACTIONS
from system.durable.errors import BadTrigger
from system.durable.schedule import ScheduleSpec
from system.durable.state import Transaction
from system.durable.trigger import TriggerSpec
from system.errors import Closed
from system.ports import Json
from system.recovery.recovery_text import recovery_text
from system.runtime import Runtime
from tests.unit.system.agents.emitting import (
    DAY,
    emit,
    row,
    spec,
    status,
)
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, log_of, opened


def test_a_root_has_no_database_before_the_first_trigger() -> None:
    room, ada = opened()
    assert not room.exists("state.db")

    emit(room, ada)

    assert room.exists("state.db")
    assert b'"format":2' in room.read("root.json")


def test_a_trigger_is_shown_and_settled_by_the_line_of_its_turn() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada)

    assert room.shown() == [
        ("trigger", {
            "source": "IMMEDIATE", "description": "brew", "payload": "tea",
            "fire_at": row(room, trigger_id).fire_at,
        }),
    ]  # fmt: skip
    start, complete = room.lines(room.session(ada))[-2:]
    assert (start.data["trigger_id"], start.data["presented"]) == (trigger_id, [])
    assert complete.data["trigger_id"] == trigger_id
    assert status(room, trigger_id) == ("DONE", 1)
    room.check_no_failures()


def test_a_trigger_is_the_first_item_and_all_messages_follow_it() -> None:
    room, ada = opened()

    async def both() -> None:
        await gather(
            room.runtime.emit(spec(room, ada)), room.runtime.emit(spec(room, ada, "cake")),
            room.runtime.send(ada, "hello"),
        )  # fmt: skip

    room.runtime._orchestrator.take_turns, take = None, room.runtime._orchestrator.take_turns
    room.run(both())
    room.runtime._orchestrator.take_turns = take
    room.start()
    room.settle()

    assert [kind for kind, _ in room.shown(0)] == ["trigger", "text"]
    assert [kind for kind, _ in room.shown(1)] == ["trigger"]


def test_a_trigger_waits_for_its_time_with_one_timer_and_without_the_disk() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=DAY)
    operations = room.world.disk.operations

    room.settle(DAY - 1)
    assert (room.provider.prompts, room.world.disk.operations) == ([], operations)

    room.settle(1)
    assert status(room, trigger_id) == ("DONE", 1)


def test_an_overdue_trigger_says_how_late_it_is() -> None:
    room, ada = opened()
    emit(room, ada, in_s=60)
    room.kill()
    room.world.clock.advance(DAY * SECOND_NS)
    room.open()
    room.settle()

    ((_, payload),) = room.shown()
    assert isinstance(payload, dict)
    assert payload["late_s"] == DAY - 60


def test_a_schedule_fires_and_says_how_many_occurrences_were_missed() -> None:
    room, ada = opened()
    hourly = ScheduleSpec("every", "3600", session_id=room.session(ada), payload="tick")
    scheduled = room.run(room.runtime.schedules.create(hourly, "hourly"))
    assert scheduled.created
    room.settle(3600)
    assert len(room.provider.prompts) == 1
    room.kill()
    room.world.clock.advance(4 * 3600 * SECOND_NS)
    room.open()
    room.settle()

    ((_, payload),) = room.shown()
    assert isinstance(payload, dict)
    assert payload["missed"] == 3
    room.run(room.runtime.schedules.delete("hourly"))
    assert room.run(room.runtime.schedules.living()) == []
    prompts = len(room.provider.prompts)
    room.settle(DAY)
    assert len(room.provider.prompts) == prompts


def test_a_paused_schedule_fires_no_more_until_it_is_resumed_or_changed() -> None:
    room, ada = opened()
    schedules = room.runtime.schedules
    session_id = room.session(ada)
    room.run(schedules.create(ScheduleSpec("every", "3600", session_id=session_id), "hourly"))
    room.run(schedules.pause("hourly"))
    room.settle(DAY)
    assert room.provider.prompts == []

    room.run(schedules.resume("hourly"))
    room.settle(3600)
    assert len(room.provider.prompts) == 1

    room.run(schedules.change("hourly", ScheduleSpec("every", "60", session_id=session_id)))
    room.settle(60)
    assert len(room.provider.prompts) == 2


def test_a_gated_agent_claims_nothing_until_its_gate_opens() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("gate", {"name": "Bob"})))
    trigger_id = emit(room, bob)
    room.settle(DAY)
    assert status(room, trigger_id) == ("PENDING", 0)

    room.say(ada, script(("ungate", {"name": "Bob"})))
    room.settle()

    assert status(room, trigger_id) == ("DONE", 1)


def test_a_trigger_without_a_session_goes_to_the_only_root_agent() -> None:
    room, ada = opened()
    trigger_id = emit(room, None)
    assert status(room, trigger_id) == ("DONE", 1)

    room.run(room.runtime.terminate(ada))
    waiting = emit(room, None)
    assert status(room, waiting) == ("PENDING", 0)
    room.create("Bob")
    room.settle()
    assert status(room, waiting) == ("DONE", 1)


def test_a_trigger_without_a_session_waits_while_there_are_several_root_agents() -> None:
    room, ada = opened()
    room.create("Bob")
    trigger_id = emit(room, None)
    room.settle(DAY)
    assert status(room, trigger_id) == ("PENDING", 0)

    room.run(room.runtime.terminate(ada))
    room.settle()

    assert status(room, trigger_id) == ("DONE", 1)


def test_a_routed_trigger_whose_agent_ends_is_routed_again() -> None:
    room, ada = opened()
    room.provider.fail("send")
    trigger_id = emit(room, None)
    assert status(room, trigger_id) == ("PENDING", 1)
    room.create("Bob")
    room.run(room.runtime.terminate(ada))
    room.settle(120)

    assert status(room, trigger_id) == ("DONE", 1)


def test_the_same_id_again_changes_nothing() -> None:
    room, ada = opened()
    first = room.run(room.runtime.emit(spec(room, ada), "mine"))
    room.settle()
    again = room.run(room.runtime.emit(spec(room, ada), "mine"))
    room.settle()

    assert (first, again) == (("mine", True), ("mine", False))
    assert len(room.provider.prompts) == 1


def test_nothing_is_emitted_into_a_runtime_that_was_closed() -> None:
    room, ada = opened()
    emit(room, ada, in_s=60)
    room.run(room.runtime.close())

    with pytest.raises(Closed):
        room.run(room.runtime.emit(TriggerSpec("IMMEDIATE")))
    with pytest.raises(Closed):
        room.run(room.runtime.close())


def test_a_closed_runtime_is_opened_again_with_its_triggers() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    room.run(room.runtime.close())
    room.reopen()
    room.settle(60)

    assert status(room, trigger_id) == ("DONE", 1)
    assert isinstance(room.runtime, Runtime)


def test_transactions_that_wait_together_remove_settled_rows_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, ada = opened()
    emit(room, ada)
    removals = []

    def remove(transaction: Transaction) -> int:
        removals.append(transaction)
        return 0

    monkeypatch.setattr("system.agents.durable_work.remove_settled", remove)

    async def emit_many() -> None:
        later = spec(room, ada, in_s=DAY)
        await gather(*(room.runtime.emit(later) for _ in range(2 * TRANSACTIONS)))

    room.run(emit_many())
    assert len(removals) == 2


def test_work_that_waits_for_a_session_that_is_not_served_is_reported() -> None:
    room, ada = opened()
    bob = room.create("Bob")
    for agent in (ada, bob):
        emit(room, agent, in_s=60)
    session_id = room.session(bob)
    room.kill()
    room.write(log_of(session_id), bytes(100))

    report = room.open().report

    assert report.unfed == [session_id]
    assert f"  session {session_id}: work in state.db waits for it, and it is not served" in (
        list(recovery_text(report))
    )


def test_the_triggers_of_an_older_program_are_taken_over_and_run_once() -> None:
    room, ada = opened()
    legacy: list[Json] = [
        {
            "fire_at": 1_600_000_000, "priority": 30, "next_action_description": "water the plants",
            "payload": {"type": "scheduled"}, "session_id": room.session(ada),
        },
        {"fire_at": 1_600_000_000, "payload": "to another", "session_id": "gone"},
    ]  # fmt: skip
    for known in (0, 1):
        imported = room.run(room.runtime.triggers.import_legacy(legacy))
        assert (len(imported.created), imported.known) == (1 - known, known)
        assert [position for position, _ in imported.refused] == [1]
        room.settle()
        room.reopen()
        room.settle()

    [(kind, payload)] = room.shown()
    assert isinstance(payload, dict)
    assert (kind, payload["source"], payload["description"]) == (
        "trigger", "SCHEDULED", "water the plants",
    )  # fmt: skip
    with pytest.raises(BadTrigger, match="position=0 is not an object"):
        room.run(room.runtime.triggers.import_legacy(["water the plants"]))
    room.check_no_failures()
