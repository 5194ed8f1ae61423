"""Triggers in turns: due, claimed, shown, settled; and what a crash or a refusal leaves."""

from __future__ import annotations

import errno
from asyncio import gather

import pytest

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from system.durable.errors import NoRecipient, StateMissing, StateOutdated
from system.durable.schedule import ScheduleSpec
from system.durable.trigger import TRIGGERS, Trigger, TriggerSpec, TriggerStatus
from system.errors import Closed
from system.ports import Json
from system.runtime import Options, Runtime
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, Room, opened

DAY = 86_400


def spec(room: Room, agent_id: str | None, payload: Json = "tea", in_s: float = 0) -> TriggerSpec:
    session_id = None if agent_id is None else room.session(agent_id)
    return TriggerSpec("IMMEDIATE", payload, "brew", session_id, now(room) + in_s)


def now(room: Room) -> float:
    return room.host.clock.wall_ns() / SECOND_NS


def emit(room: Room, agent_id: str | None, payload: Json = "tea", in_s: float = 0) -> str:
    """Emit a trigger, and let everybody finish who may run now."""
    emitted = room.run(room.runtime.emit(spec(room, agent_id, payload, in_s)))
    room.settle()
    return emitted.trigger_id


def row(room: Room, trigger_id: str) -> Trigger:
    state = room.runtime._orchestrator.state
    assert state is not None
    found = state.transact(lambda each: TRIGGERS.read(each, trigger_id))
    assert found is not None
    return found


def status(room: Room, trigger_id: str) -> tuple[str, int]:
    found = row(room, trigger_id)
    return str(found.status), found.attempts


def fail_disk(room: Room, plan: str) -> FaultInjector:
    injector = FaultInjector(FaultPlan.parse(plan))
    injector.install(room.world.disk)
    return injector


def fail_when_asked(room: Room, plan: str) -> FaultInjector:
    """Let the disk fail from the moment at which the provider is asked."""
    injector = FaultInjector(FaultPlan.parse(plan))

    async def install() -> None:
        injector.install(room.world.disk)
        room.provider.hooks.clear()

    room.provider.hooks["send"] = install
    return injector


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


def test_a_provider_that_fails_counts_and_the_trigger_waits_longer_each_time() -> None:
    room, ada = opened(Options(most_attempts=2))
    room.provider.fail("send", 2)
    trigger_id = emit(room, ada)
    assert status(room, trigger_id) == ("PENDING", 1)
    room.settle(29)
    assert status(room, trigger_id) == ("PENDING", 1)

    room.settle(120)

    assert status(room, trigger_id) == ("DEAD", 2)
    assert row(room, trigger_id).reason == "send failed"
    room.check_no_failures()


def test_a_poison_trigger_does_not_take_the_messages_along() -> None:
    room, ada = opened()
    room.provider.fail("send")
    emit(room, ada)
    room.say(ada, "hello")
    room.settle(5)

    assert room.shown() == [("text", "hello")]


def test_a_turn_that_the_disk_refuses_does_not_count() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    room.files.fail("append", "events.jsonl", errno.ENOSPC)
    trigger_id = emit(room, ada)
    room.settle(5)

    assert status(room, trigger_id) == ("DONE", 1)
    assert row(room, trigger_id).fence == 2


def test_a_turn_whose_line_is_in_doubt_keeps_its_trigger_until_the_next_boot() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    room.files.fail("fdatasync", "events.jsonl", errno.EIO)
    trigger_id = emit(room, ada)
    room.settle(DAY)
    assert (status(room, trigger_id), len(room.provider.prompts)) == (("CLAIMED", 1), 2)

    room.reopen()
    room.settle(DAY)

    assert row(room, trigger_id).status is TriggerStatus.DONE


def test_a_line_whose_transaction_a_crash_has_prevented_is_carried_out_by_the_boot() -> None:
    room, ada = opened()
    emit(room, ada)
    injector = fail_when_asked(room, "write *state.db-wal #1 EIO")
    trigger_id = emit(room, ada)
    injector.remove()
    assert room.lines(room.session(ada))[-1].data["trigger_id"] == trigger_id
    prompts = len(room.provider.prompts)

    report = room.reopen().report
    room.settle(DAY)

    assert (report.carried_out, report.reclaimed) == (1, [])
    assert (status(room, trigger_id), len(room.provider.prompts)) == (("DONE", 1), prompts)
    assert room.reopen().report.carried_out == 0


def test_a_turn_that_a_crash_interrupts_gives_its_trigger_back_counted() -> None:
    room, ada = opened()

    room.provider.hooks["send"] = lambda: room.host.clock.sleep(DAY * SECOND_NS)
    emit(room, ada)
    room.provider.hooks.clear()

    report = room.reopen().report
    room.settle()

    assert len(report.reclaimed) == 1
    assert status(room, report.reclaimed[0]) == ("DONE", 2)


def test_a_full_disk_delays_the_settling_and_a_retry_does_it() -> None:
    room, ada = opened()
    emit(room, ada)
    injector = fail_when_asked(room, "write *state.db-wal #1+ ENOSPC")
    trigger_id = emit(room, ada)
    assert status(room, trigger_id) == ("CLAIMED", 1)
    injector.remove()

    room.settle(5)

    assert status(room, trigger_id) == ("DONE", 1)
    room.check_no_failures()


def test_a_full_disk_delays_the_claim_and_messages_are_shown_without_it() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    injector = fail_disk(room, "write *state.db-wal #1+ ENOSPC")
    room.settle(60)
    room.say(ada, "hello")
    room.settle(5)
    assert room.shown() == [("text", "hello")]
    assert status(room, trigger_id) == ("PENDING", 0)

    injector.remove()
    room.settle(120)

    assert status(room, trigger_id) == ("DONE", 1)


def test_a_database_that_has_stopped_leaves_the_messages_to_their_turns() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    injector = fail_disk(room, "fsync *state.db-wal #1+ EIO:ext4")
    room.settle(60)
    injector.remove()
    room.say(ada, "hello")
    room.settle(5)
    assert room.shown() == [("text", "hello")]
    room.check_no_failures()

    room.reopen()
    room.settle(60)

    assert row(room, trigger_id).status is TriggerStatus.DONE


def test_a_gated_agent_claims_nothing_until_its_gate_opens() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, play(("gate", {"name": "Bob"})))
    trigger_id = emit(room, bob)
    room.settle(DAY)
    assert status(room, trigger_id) == ("PENDING", 0)

    room.say(ada, play(("ungate", {"name": "Bob"})))
    room.settle()

    assert status(room, trigger_id) == ("DONE", 1)


def test_the_triggers_of_an_agent_that_ends_fail() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    session_id = room.session(ada)
    room.run(room.runtime.terminate(ada))
    room.settle()

    assert status(room, trigger_id) == ("FAILED", 0)
    with pytest.raises(NoRecipient):
        room.run(room.runtime.emit(TriggerSpec("IMMEDIATE", session_id=session_id)))


def test_an_end_that_the_database_has_refused_is_repeated_by_the_boot() -> None:
    room, ada = opened()
    trigger_id = emit(room, ada, in_s=60)
    fail_disk(room, "write *state.db-wal #1 EIO")
    room.run(room.runtime.terminate(ada))
    room.reopen()

    assert status(room, trigger_id) == ("FAILED", 0)


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


def test_an_older_copy_of_the_database_is_refused() -> None:
    room, ada = opened()
    emit(room, ada)
    room.run(room.runtime.close())
    older = room.read("state.db")
    room.reopen()
    emit(room, ada)
    emit(room, ada)
    room.run(room.runtime.close())
    room.kill()
    room.write("state.db", older)

    with pytest.raises(StateOutdated):
        room.open()


def test_a_lost_database_is_not_replaced_by_an_empty_one() -> None:
    room, ada = opened()
    emit(room, ada)
    room.run(room.runtime.close())
    room.kill()
    room.host.files.unlink("state.db")

    with pytest.raises(StateMissing):
        room.open()


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
