"""The ledger: an intent before the attempt, an outcome after it, a person where none is known."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest

from system.durable.activity import Activity, ActivityStatus, Decision, Intent, Refused, Unknown
from system.durable.errors import (
    AlreadyDecided,
    BadActivity,
    KeyReused,
    RowDamaged,
    UnknownActivity,
)
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.task import Checkpoint, TaskStatus
from system.errors import NotPlainJson
from system.ports import Action, Json, Performed, SideEffectClass
from tests.unit.durable.durable_bench import Bench

KEY = "activity:t:1"
DUMB = Action("mail", SideEffectClass.IRREVERSIBLE, provider_dedup=False, timeout_ns=10**9)
DEDUP = Action("pay", SideEffectClass.IRREVERSIBLE, provider_dedup=True, timeout_ns=10**9)


def intend(bench: Bench, action: Action = DUMB, key: str = KEY, **changed: Any) -> Activity:
    intent = Intent(**{"key": key, "action": action, "arguments": {"to": "Anna"}, **changed})
    return bench.do(bench.stores.activities.intend, intent)


def attempt(bench: Bench, key: str = KEY) -> Activity | None:
    return bench.do(bench.stores.activities.attempt, key, {})


def record(bench: Bench, outcome: Any, key: str = KEY) -> Activity:
    return bench.do(bench.stores.activities.record, key, outcome)


def read(bench: Bench, key: str = KEY) -> Activity:
    return bench.do(bench.stores.activities.read, key)


def resolve(bench: Bench, decision: Decision, ref: str | None = None) -> Activity:
    return bench.do(bench.stores.activities.resolve, KEY, decision, "Bob", ref)


def test_an_intent_is_durable_before_an_attempt(bench: Bench) -> None:
    row = intend(bench, session_id="s", turn_id="turn", task_id="t")
    bench.cut_power()
    assert read(bench) == row
    assert (row.status, row.attempts, row.class_, row.arguments) == (
        "INTENT", 0, "IRREVERSIBLE", {"to": "Anna"},
    )  # fmt: skip
    assert row.result is None
    assert bench.do(bench.stores.activities.recover) == [KEY]


def test_an_attempt_is_counted_durably(bench: Bench) -> None:
    intend(bench)
    attempted = attempt(bench)
    assert attempted is not None
    assert attempted.epoch == 1
    bench.cut_power()
    assert read(bench).attempts == 1


def test_a_second_caller_does_not_attempt_what_is_under_way(bench: Bench) -> None:
    intend(bench, DEDUP)
    assert attempt(bench) is not None
    assert attempt(bench) is None
    record(bench, Unknown("timeout"))
    assert attempt(bench) is not None
    record(bench, Performed("ref", [1]))
    assert attempt(bench) is None
    assert read(bench).attempts == 2


def test_a_performed_activity_keeps_its_result(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Performed("mail-7", {"sent": True}))
    bench.cut_power()
    row = intend(bench)
    assert (row.status, row.provider_ref, row.result) == ("DONE", "mail-7", {"sent": True})


@pytest.mark.parametrize(
    ("performed", "kept", "reason"),
    [
        (Performed("\ud800", 1), (None, 1), "its provider_ref is left out: value: lone surrogate"),
        (Performed(cast("str", 7), 1), (None, 1), "its provider_ref is left out: provider_ref: 7"),
        (Performed("x" * (1 << 20), 1), (None, 1), "its provider_ref is left out: a payload of"),
        (Performed("a", float("nan")), ("a", None), "its result is left out: value: nan is not"),
        (Performed("a", cast("Json", Decimal(1))), ("a", None), "its result is left out: value: D"),
        (Performed("a", "x" * (1 << 20)), ("a", None), "its result is left out: a payload of size"),
    ],
)
def test_what_no_message_takes_is_left_out_and_does_not_undo_the_effect(
    bench: Bench, performed: Performed, kept: tuple[object, object], reason: str
) -> None:
    intend(bench)
    attempt(bench)
    row = record(bench, performed)
    assert (row.status, row.provider_ref, row.result) == ("DONE", *kept)
    assert (row.reason or "").startswith(reason)
    assert "; its" not in (row.reason or "")


def test_both_parts_of_an_outcome_may_be_left_out(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    row = record(bench, Performed("\ud800", float("nan")))
    assert (row.status, row.provider_ref, row.result) == ("DONE", None, None)
    assert (row.reason or "").count(" is left out: ") == 2


@pytest.mark.parametrize("changed", [{"arguments": {"to": "Bob"}}, {"action": DEDUP}])
def test_a_key_is_that_of_one_call(bench: Bench, changed: dict[str, Any]) -> None:
    intend(bench)
    assert intend(bench).attempts == 0
    with pytest.raises(KeyReused, match="of action='mail'; use a fresh key"):
        intend(bench, **changed)


def test_only_a_definite_refusal_is_failed(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    assert record(bench, Refused("no such address")).status is ActivityStatus.FAILED


@pytest.mark.parametrize(
    ("action", "status"), [(DUMB, "UNCERTAIN"), (DEDUP, "INTENT")], ids=["dumb", "dedup"]
)
@pytest.mark.parametrize("how", ["timeout", "crash"])
def test_an_unknown_outcome_is_repeated_only_where_the_provider_deduplicates(
    bench: Bench, action: Action, status: str, how: str
) -> None:
    intend(bench, action)
    attempt(bench)
    if how == "timeout":
        record(bench, Unknown("timeout"))
    else:
        bench.kill()
        assert bench.do(bench.stores.activities.recover) == ([KEY] if status == "INTENT" else [])
    assert read(bench).status == status


def test_a_boot_repeats_an_attempt_whatever_epoch_it_names(bench: Bench) -> None:
    intend(bench, DEDUP)
    attempt(bench)
    # A root that has lost ``runtime.lock`` begins with epoch 1 again.
    bench.epoch -= 1
    bench.kill()
    assert bench.do(bench.stores.activities.recover) == [KEY]

    again = attempt(bench)

    assert again is not None
    assert (again.attempts, again.epoch) == (2, bench.epoch)


def test_a_second_recovery_decides_nothing_new(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    bench.kill()
    bench.do(bench.stores.activities.recover)
    row = read(bench)
    bench.kill()
    assert bench.do(bench.stores.activities.recover) == []
    assert read(bench) == row


@pytest.mark.parametrize("why", ["attempts", "window"])
def test_a_deduplicating_provider_is_not_trusted_for_ever(bench: Bench, why: str) -> None:
    intend(bench, DEDUP)
    for number in range(1, 6):
        attempt(bench)
        if why == "window":
            bench.advance(86_400)
        status = record(bench, Unknown("timeout")).status
        assert status == ("INTENT" if number < 5 and why == "attempts" else "UNCERTAIN")
        if status == "UNCERTAIN":
            break


def test_an_attempt_that_comes_too_late_is_not_made(bench: Bench) -> None:
    intend(bench, DEDUP)
    attempt(bench)
    assert record(bench, Unknown("timeout")).status == "INTENT"
    bench.advance(86_400)
    assert attempt(bench) is None
    row = read(bench)
    assert (row.status, row.attempts, row.reason) == ("UNCERTAIN", 1, "timeout")


def uncertain(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Unknown("timeout"))


def test_a_person_says_that_it_was_performed(bench: Bench) -> None:
    uncertain(bench)
    assert [each.idem_key for each in undecided(bench)] == [KEY]
    row = resolve(bench, Decision.PERFORMED, "mail-7")
    assert (row.status, row.provider_ref, row.decided_by) == ("DONE", "mail-7", "Bob")
    assert undecided(bench) == []


def test_an_activity_that_is_still_to_be_performed_needs_no_decision(bench: Bench) -> None:
    intend(bench)
    assert undecided(bench) == []


def undecided(bench: Bench) -> list[Activity]:
    found = bench.do(bench.stores.activities.undecided)
    return [each for each in found if isinstance(each, Activity)]


def test_a_person_says_that_it_was_not_performed(bench: Bench) -> None:
    uncertain(bench)
    assert resolve(bench, Decision.NOT_PERFORMED).status is ActivityStatus.FAILED
    assert undecided(bench) == []
    with pytest.raises(AlreadyDecided, match="is FAILED by Bob"):
        resolve(bench, Decision.AGAIN)


def test_a_person_has_it_performed_again(bench: Bench) -> None:
    uncertain(bench)
    row = resolve(bench, Decision.AGAIN)
    assert (row.status, row.attempts) == ("INTENT", 0)
    assert attempt(bench) is not None
    record(bench, Performed(None, None))
    with pytest.raises(AlreadyDecided, match="is DONE, so"):
        resolve(bench, Decision.AGAIN)


def test_a_decision_names_a_person(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Unknown("timeout"))
    with pytest.raises(BadActivity, match="by='' names no person; see the section on activities"):
        bench.do(bench.stores.activities.resolve, KEY, Decision.PERFORMED, "")
    assert read(bench).decided_by is None


def test_an_activity_under_way_is_not_resolved(bench: Bench) -> None:
    intend(bench)
    with pytest.raises(AlreadyDecided, match="is INTENT"):
        resolve(bench, Decision.PERFORMED)
    with pytest.raises(NotPlainJson):
        resolve(bench, Decision.PERFORMED, "\ud800")
    with pytest.raises(UnknownActivity, match="activities list"):
        read(bench, "activity:none")


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"key": "mail"}, BadActivity, "'mail' is not a key; give activity: and 1 to 400"),
        ({"key": "activity:a b"}, BadActivity, "activity:a b' is not a key; give activity: and"),
        ({"arguments": {"a": "b" * (1 << 20)}}, BadActivity, "over the limit of 1048576"),
        ({"arguments": {"a": float("inf")}}, NotPlainJson, "not a finite number"),
        ({"action": Action("look", SideEffectClass.READ_ONLY, provider_dedup=False, timeout_ns=1)},
         BadActivity, "is READ_ONLY and needs no row"),
    ],
)  # fmt: skip
def test_bad_activities_are_refused_and_leave_no_row(
    bench: Bench, changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        intend(bench, **changed)
    assert bench.do(Transaction.execute, "SELECT count(*) FROM activity_log") == [(0,)]


def test_a_damaged_activity_is_reported_and_neither_performed_nor_removed(bench: Bench) -> None:
    intend(bench)
    bench.do(Transaction.execute, "UPDATE activity_log SET action='mbil'")
    assert [type(each) for each in bench.do(bench.stores.activities.recover)] == [RowDamaged]
    assert [type(each) for each in bench.do(bench.stores.activities.undecided)] == [RowDamaged]
    with pytest.raises(RowDamaged):
        intend(bench)
    with pytest.raises(RowDamaged):
        attempt(bench)


@pytest.mark.parametrize("end", ["done", "not performed", "failed", "uncertain", "intent"])
def test_only_decided_activities_are_removed(bench: Bench, end: str) -> None:
    intend(bench, session_id="s")
    if end != "intent":
        attempt(bench)
        outcome = {"done": Performed(None, None), "failed": Refused("no")}.get(end, Unknown("?"))
        record(bench, outcome)
    if end == "not performed":
        resolve(bench, Decision.NOT_PERFORMED)
    bench.advance(86_400)
    assert bench.do(remove_settled) == (1 if end in {"done", "not performed"} else 0)


@pytest.mark.parametrize("status", [TaskStatus.ACTIVE, TaskStatus.DONE, None])
def test_activities_of_a_task_are_kept_until_it_has_ended(
    bench: Bench, status: TaskStatus | None
) -> None:
    intend(bench, task_id="t")
    attempt(bench)
    record(bench, Performed(None, None))
    checkpoint = Checkpoint("t", "s", 0, status or TaskStatus.DONE, [], [("a", 1)])
    bench.do(bench.stores.tasks.checkpoint, checkpoint)
    if status is TaskStatus.ACTIVE:
        bench.advance(86_400)
        assert bench.do(remove_settled) == 0
        bench.do(bench.stores.tasks.block, "t", "why")
    if status is None:
        bench.do(Transaction.execute, "UPDATE tasks SET todos_json='x'")
    bench.advance(86_400)
    assert bench.do(remove_settled) == (1 if status is TaskStatus.DONE else 0)


@pytest.mark.parametrize("task_id", [None, "t"])
def test_a_program_finds_its_activity_again_however_late(bench: Bench, task_id: str | None) -> None:
    intend(bench, task_id=task_id)
    attempt(bench)
    record(bench, Performed("ref", None))
    bench.advance(1000 * 86_400)
    bench.do(remove_settled)
    assert intend(bench, task_id=task_id).provider_ref == "ref"


def test_damaged_activities_and_schedules_are_kept(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Performed(None, None))
    bench.do(Transaction.execute, "UPDATE activity_log SET reason='x'")
    bench.advance(10 * 86_400)
    assert bench.do(remove_settled) == 0
