"""Schedules: one occurrence waits, and its claim emits the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from system.durable.errors import (
    BadSchedule,
    BadTrigger,
    NoRecipient,
    NotAnOccurrence,
    RowDamaged,
    UnknownSchedule,
)
from system.durable.schedule import SCHEDULES, CatchUp, Schedule, Scheduled, ScheduleSpec
from system.durable.seconds import SECOND_NS
from system.durable.state import Transaction
from system.durable.trigger import SessionStatus, Trigger, TriggerSpec
from tests.unit.durable.durable_bench import Bench


def made(bench: Bench, schedule_id: str | None = "a", **changed: Any) -> Scheduled:
    """Create a schedule for every 60 s."""
    spec = ScheduleSpec(**{"kind": "every", "spec": "60", "session_id": "s", **changed})
    return bench.do(bench.stores.schedules.create, spec, schedule_id)


def schedule(bench: Bench, schedule_id: str = "a") -> Schedule:
    found = bench.do(SCHEDULES.read, schedule_id)
    assert found is not None
    return found


def waiting(bench: Bench, session: str | None = "s") -> list[Trigger]:
    ids = bench.do(
        Transaction.execute,
        "SELECT id FROM triggers WHERE session_id IS ? AND status='PENDING' ORDER BY fire_at",
        (session,),
    )
    return [bench.row(str(trigger_id)) for (trigger_id,) in ids]


def fire(bench: Bench) -> Trigger:
    """Claim the due occurrence and settle it."""
    claim = bench.claim(bench.due() or "")
    bench.do(bench.stores.triggers.ack, claim)
    return claim.trigger


def test_a_schedule_waits_with_one_occurrence(bench: Bench) -> None:
    assert made(bench, payload={"n": 1}, description="backup") == Scheduled("a", created=True)
    bench.cut_power()
    [row] = waiting(bench)
    anchor = round(schedule(bench).created_at)
    assert (row.source, row.fire_at, row.priority) == ("SCHEDULED", anchor + 60.0, 30)
    assert row.dedup_key == f"scheduled:a:{anchor + 60}"
    assert (row.payload, row.description) == ({"n": 1}, "backup")
    assert bench.due() is None
    bench.advance(60)
    assert bench.due() == row.id


def test_an_id_that_is_taken_changes_nothing(bench: Bench) -> None:
    made(bench)
    assert made(bench, spec="5") == Scheduled("a", created=False)
    assert schedule(bench).spec == "60"
    fresh = made(bench, None)
    assert fresh.created
    assert len(fresh.schedule_id) == 32


def test_the_claim_of_an_occurrence_emits_the_next(bench: Bench) -> None:
    made(bench)
    first = schedule(bench).next_fire_at or 0
    for number in range(3):
        bench.advance(60)
        claim = bench.claim(bench.due() or "")
        bench.cut_power()
        assert [row.fire_at for row in waiting(bench)] == [first + 60.0 * (number + 1)]
        assert schedule(bench).last_nominal == first + 60 * number
        bench.do(bench.stores.triggers.ack, claim)


def test_a_repeated_attempt_emits_no_further_occurrence(bench: Bench) -> None:
    made(bench)
    bench.advance(200)
    claim = bench.claim(bench.due() or "")
    bench.do(bench.stores.triggers.fail, claim, "busy")
    before = schedule(bench)
    bench.advance(40)
    again = bench.claim(claim.trigger.id)
    assert (again.trigger.missed, claim.trigger.missed) == (2, 2)
    assert schedule(bench) == before


def test_a_repeated_attempt_of_an_occurrence_in_time_emits_no_further_one(bench: Bench) -> None:
    made(bench)
    bench.advance(60)
    claim = bench.claim(bench.due() or "")
    bench.do(bench.stores.triggers.fail, claim, "busy")
    before = [row.id for row in waiting(bench)]
    bench.advance(40)
    again = bench.claim(claim.trigger.id)
    bench.do(bench.stores.triggers.fail, again, "busy")
    assert [row.id for row in waiting(bench)] == before


@pytest.mark.parametrize(
    ("catch_up", "fired", "missed"),
    [(CatchUp.LATEST, [0], [4]), (CatchUp.ALL, range(5), [0] * 5), (CatchUp.SKIP, [3], [1])],
)
def test_an_outage_is_caught_up_as_the_schedule_says(
    bench: Bench, catch_up: CatchUp, fired: Sequence[int], missed: list[int]
) -> None:
    made(bench, catch_up=catch_up)
    nominal = schedule(bench).next_fire_at or 0
    bench.world.kill()
    bench.advance(60 * 5 + 30)
    bench.boot()
    rows = []
    while (due := bench.due()) is not None:
        claim = bench.do(bench.stores.triggers.claim, due)
        if claim is not None:
            bench.do(bench.stores.triggers.ack, claim)
            rows.append(claim.trigger)
    assert [row.missed for row in rows] == missed
    assert [row.fire_at for row in rows] == [nominal + 60.0 * n for n in fired]
    assert [row.fire_at for row in waiting(bench)] == [nominal + 300.0]
    bench.advance(60)
    assert fire(bench).missed == 0


def test_an_occurrence_that_is_a_little_late_is_not_skipped(bench: Bench) -> None:
    made(bench, catch_up=CatchUp.SKIP)
    bench.advance(60 + 119)
    assert fire(bench).missed == 1


def test_an_occurrence_that_is_hardly_too_late_is_skipped(bench: Bench) -> None:
    made(bench, catch_up=CatchUp.SKIP)
    [row] = waiting(bench)
    bench.advance(row.fire_at + 120.5 - bench.now)
    assert bench.do(bench.stores.triggers.claim, row.id) is None
    assert [each.fire_at - row.fire_at for each in waiting(bench)] == [60.0]


def test_a_skipped_occurrence_is_done(bench: Bench) -> None:
    made(bench, catch_up=CatchUp.SKIP)
    [row] = waiting(bench)
    bench.advance(60 + 200)
    assert bench.do(bench.stores.triggers.claim, row.id) is None
    assert bench.row(row.id).resolution == "skipped"


def test_a_one_time_schedule_fires_once_for_ever(bench: Bench) -> None:
    made(bench, kind="once", spec="2023-11-14T22:13:30Z")
    [row] = waiting(bench)
    assert row.dedup_key == "scheduled-once:a"
    bench.advance(10)
    claim = bench.claim(row.id)
    # The schedule has ended before its trigger is settled: no crash in between repeats it.
    assert schedule(bench).ended_at is not None
    bench.do(bench.stores.triggers.ack, claim)
    bench.kill()
    assert bench.emit("scheduled-once:a", "SCHEDULED") == row.id
    assert made(bench, kind="once", spec="2030-01-01T00:00:00Z") == ("a", False)
    assert waiting(bench) == []


def test_an_occurrence_is_not_emitted_by_hand(bench: Bench) -> None:
    made(bench)
    [row] = waiting(bench)
    assert bench.emit(row.dedup_key, "SCHEDULED") == row.id
    bench.advance(60)
    fire(bench)
    for nominal in (row.fire_at, row.fire_at + 6000):
        with pytest.raises(NotAnOccurrence):
            bench.emit(f"scheduled:a:{round(nominal)}", "SCHEDULED")


def test_a_changed_schedule_supersedes_its_next_occurrence(bench: Bench) -> None:
    made(bench)
    [old] = waiting(bench)
    spec = ScheduleSpec("every", "60", session_id="s", payload="new")
    bench.do(bench.stores.schedules.change, "a", spec)
    [new] = waiting(bench)
    assert (new.fire_at, new.dedup_key, new.payload) == (old.fire_at, old.dedup_key, "new")
    assert bench.row(old.id).resolution == "superseded"
    with pytest.raises(UnknownSchedule):
        bench.do(bench.stores.schedules.change, "b", spec)


def test_a_changed_schedule_repeats_no_occurrence(bench: Bench) -> None:
    made(bench)
    bench.advance(60)
    nominal = fire(bench).fire_at
    bench.do(bench.stores.schedules.change, "a", ScheduleSpec("every", "20", session_id="s"))
    assert [row.fire_at for row in waiting(bench)] == [nominal + 20]


def test_a_changed_schedule_repeats_no_occurrence_after_the_clock_was_set_back(
    bench: Bench,
) -> None:
    made(bench)
    bench.advance(60)
    nominal = fire(bench).fire_at
    bench.world.clock.step_wall(-300 * SECOND_NS)
    bench.kill()
    bench.do(bench.stores.schedules.change, "a", ScheduleSpec("every", "60", session_id="s"))
    assert [row.fire_at for row in waiting(bench)] == [nominal + 60]


def test_a_changed_schedule_still_counts_from_its_creation(bench: Bench) -> None:
    made(bench)
    created = round(schedule(bench).created_at)
    bench.advance(30)
    bench.do(bench.stores.schedules.change, "a", ScheduleSpec("every", "20", session_id="s"))
    assert [row.fire_at for row in waiting(bench)] == [created + 40]


def test_a_schedule_of_two_sessions_leaves_nothing_in_either(bench: Bench) -> None:
    made(bench)
    bench.advance(60)
    bench.do(bench.stores.triggers.fail, bench.claim(bench.due() or ""), "busy")
    bench.do(bench.stores.schedules.change, "a", ScheduleSpec("every", "60", session_id="other"))
    bench.do(bench.stores.schedules.delete, "a")
    assert [*waiting(bench), *waiting(bench, "other")] == []


def test_an_occurrence_that_was_never_run_leaves_no_key(bench: Bench) -> None:
    made(bench)
    [row] = waiting(bench)
    bench.do(bench.stores.schedules.pause, "a")
    with pytest.raises(NotAnOccurrence):
        bench.emit(row.dedup_key, "SCHEDULED")


def test_a_deleted_schedule_leaves_nothing_waiting(bench: Bench) -> None:
    made(bench)
    bench.advance(60)
    retried = bench.claim(bench.due() or "")
    bench.do(bench.stores.triggers.fail, retried, "busy")
    bystander = bench.emit()
    assert len(waiting(bench)) == 3
    bench.do(bench.stores.schedules.delete, "a")
    assert [row.id for row in waiting(bench)] == [bystander]
    assert schedule(bench).payload_json == "null"
    with pytest.raises(UnknownSchedule, match="see `schedules`"):
        bench.do(bench.stores.schedules.delete, "a")


def test_a_deleted_schedule_leaves_nothing_where_it_was_routed_to(bench: Bench) -> None:
    made(bench, session_id=None)
    bench.advance(60)
    claim = bench.claim(bench.due(None) or "")
    bench.do(bench.stores.triggers.route, claim, "other")
    bench.do(bench.stores.schedules.delete, "a")
    assert waiting(bench, "other") == waiting(bench, None) == []
    assert bench.row(claim.trigger.id).resolution == "superseded"


def test_a_paused_schedule_fires_again_from_its_next_time_on(bench: Bench) -> None:
    made(bench)
    nominal = schedule(bench).next_fire_at or 0
    for _ in range(2):
        bench.do(bench.stores.schedules.pause, "a")
    assert waiting(bench) == []
    assert (schedule(bench).paused, schedule(bench).reason) == (True, "by a person")
    bench.advance(150)
    for _ in range(2):
        bench.do(bench.stores.schedules.resume, "a")
    assert [row.fire_at for row in waiting(bench)] == [nominal + 120.0]
    assert not schedule(bench).paused


def die(bench: Bench) -> None:
    bench.advance(60)
    claim = bench.claim(bench.due() or "")
    bench.do(bench.stores.triggers.fail, claim, "no", retryable=False)


def test_five_dead_occurrences_in_a_row_pause_a_schedule(bench: Bench) -> None:
    made(bench)
    for _ in range(4):
        die(bench)
    bench.advance(60)
    fire(bench)
    assert schedule(bench).dead_in_row == 0
    for _ in range(5):
        assert not schedule(bench).paused
        die(bench)
    found = schedule(bench)
    assert (found.paused, found.reason) == (True, "5 occurrences in a row are DEAD")
    assert waiting(bench) == []


def test_a_resumed_schedule_counts_dead_occurrences_anew(bench: Bench) -> None:
    made(bench)
    for _ in range(5):
        die(bench)
    bench.do(bench.stores.schedules.resume, "a")
    die(bench)
    assert (schedule(bench).paused, schedule(bench).dead_in_row) == (False, 1)


def test_schedules_end_with_their_session(bench: Bench) -> None:
    made(bench)
    made(bench, "b", session_id=None)
    bench.do(bench.stores.triggers.end_session, "s")
    assert waiting(bench) == []
    assert [each.schedule_id for each in living(bench)] == ["b"]


def living(bench: Bench) -> list[Schedule]:
    found = bench.do(bench.stores.schedules.all_living)
    return [each for each in found if isinstance(each, Schedule)]


def test_a_damaged_schedule_is_reported_and_its_occurrence_still_run(bench: Bench) -> None:
    made(bench)
    bench.do(Transaction.execute, "UPDATE schedules SET spec='61'")
    assert [type(each) for each in bench.do(bench.stores.schedules.all_living)] == [RowDamaged]
    bench.advance(60)
    assert fire(bench).missed == 0
    assert waiting(bench) == []
    with pytest.raises(RowDamaged):
        made(bench)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"kind": "weekly"}, BadSchedule, "'weekly' is not a valid ScheduleKind"),
        ({"catch_up": "some"}, BadSchedule, "'some' is not a valid CatchUp"),
        ({"spec": "0"}, BadSchedule, "spec='0' is not a number of seconds"),
        ({"spec": 60}, BadSchedule, "spec=60 and zone='UTC' are not both texts"),
        ({"zone": None}, BadSchedule, "zone=None are not both texts"),
        ({"zone": "Mars"}, BadSchedule, "zone='Mars' is not known"),
        ({"kind": "cron", "spec": "* * *"}, BadSchedule, "is not five cron fields"),
        ({"kind": "once", "spec": "1969-12-31T00:00Z"}, BadSchedule, "has no time to come"),
        ({"priority": 50}, BadTrigger, "priority=50 is not from 20 to 40"),
        ({"session_id": "gone"}, NoRecipient, "it is ended"),
        ({"schedule_id": "a:b"}, BadSchedule, "give 1 to 100 ASCII letters, digits and _ . -"),
        ({"kind": "once", "spec": "9999-12-31T23:00-01:00"}, BadSchedule, "has no time to come"),
    ],
)
def test_a_bad_schedule_is_refused_and_nothing_is_kept(
    bench: Bench, changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    bench.sessions.states["gone"] = SessionStatus.ENDED
    with pytest.raises(error, match=message):
        made(bench, **changed)
    assert living(bench) == []
    assert waiting(bench) == []


def test_a_recurring_schedule_without_a_time_to_come_ends(bench: Bench) -> None:
    made(bench, kind="cron", spec="0 0 29 2 *")
    assert waiting(bench)[0].fire_at == 1709164800.0


def test_a_trigger_of_a_removed_schedule_is_run_as_it_is(bench: Bench) -> None:
    made(bench)
    bench.do(Transaction.execute, "DELETE FROM schedules")
    bench.advance(60)
    fire(bench)
    spec = TriggerSpec("SCHEDULED", session_id="s", key="scheduled:a:5")
    with pytest.raises(NotAnOccurrence):
        bench.do(bench.stores.emitter.emit, spec)


def test_a_damaged_schedule_or_key_ends_with_no_other(bench: Bench) -> None:
    made(bench)
    made(bench, "b")
    bench.do(Transaction.execute, "UPDATE schedules SET spec='61' WHERE schedule_id='a'")
    bench.do(bench.stores.triggers.end_session, "s")
    assert [row.status for row in waiting(bench)] == []
    assert living(bench) == []


def test_a_schedule_whose_next_occurrence_is_gone_can_be_deleted(bench: Bench) -> None:
    made(bench)
    bench.do(Transaction.execute, "DELETE FROM triggers")
    bench.do(bench.stores.schedules.delete, "a")
    made(bench, "b")
    bench.do(Transaction.execute, "DELETE FROM dedup")
    bench.do(bench.stores.schedules.delete, "b")
    assert living(bench) == []


def test_a_dead_occurrence_is_counted_while_its_schedule_is_paused(bench: Bench) -> None:
    made(bench)
    bench.advance(60)
    claim = bench.claim(bench.due() or "")
    bench.do(bench.stores.schedules.pause, "a")
    bench.do(bench.stores.triggers.fail, claim, "no", retryable=False)
    assert (schedule(bench).dead_in_row, schedule(bench).reason) == (1, "by a person")
