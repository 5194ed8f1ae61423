"""``emit``: the only entrance of triggers, durable before it returns, and its dedup keys."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from system.durable.errors import (
    BadTrigger,
    KeyOfAnotherSource,
    NoRecipient,
    NotAnOccurrence,
    RowDamaged,
)
from system.durable.producers import PRODUCERS
from system.durable.state import STATE, Transaction
from system.durable.trigger import (
    Emitted,
    SessionStatus,
    TriggerSource,
    TriggerSpec,
    TriggerStatus,
)
from system.errors import NotPlainJson, PayloadTooLarge
from tests.unit.durable.durable_bench import Bench


def emitted(bench: Bench, spec: TriggerSpec, trigger_id: str | None = None) -> Emitted:
    return bench.do(bench.stores.emitter.emit, spec, trigger_id)


def test_an_emitted_trigger_is_durable_before_emit_returns(bench: Bench) -> None:
    trigger_id = bench.emit(payload={"say": "hello"}, fire_at=2e9)
    bench.cut_power()
    row = bench.row(trigger_id)
    assert (row.source, row.status, row.payload) == ("IMMEDIATE", "PENDING", {"say": "hello"})
    assert (row.fire_at, row.due_at, row.session_id, row.priority) == (2e9, 2e9, "s", 10)
    assert (row.attempts, row.fence, row.description) == (0, 0, "about it")
    assert bench.stores.queue.next_due_at() == 2e9


def test_a_trigger_without_a_time_is_due_at_once(bench: Bench) -> None:
    trigger_id = bench.emit()
    assert bench.due() == trigger_id


def test_ids_are_in_the_order_of_time(bench: Bench) -> None:
    ids = []
    for _ in range(20):
        ids.append(bench.emit())
        bench.advance(0.001)
    assert ids == sorted(ids)
    assert {len(each) for each in ids} == {32}
    assert len({each[12:] for each in ids}) == 20


def test_a_chosen_id_again_changes_nothing(bench: Bench) -> None:
    spec = TriggerSpec("IMMEDIATE", 1, session_id="s")
    assert emitted(bench, spec, "mine") == Emitted("mine", created=True)
    assert emitted(bench, TriggerSpec("IMMEDIATE", 2, session_id="s"), "mine") == ("mine", False)
    assert bench.row("mine").payload == 1


def test_a_taken_key_returns_its_holder(bench: Bench) -> None:
    first = bench.emit("immediate:a")
    bench.cut_power()
    spec = TriggerSpec("IMMEDIATE", session_id="s", key="immediate:a")
    assert emitted(bench, spec) == Emitted(first, created=False)


def settle(bench: Bench, trigger_id: str) -> None:
    bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))


@pytest.mark.parametrize(
    ("source", "key", "session", "refires"),
    [
        ("MESSAGE", "message:chat:a:1", "s", "after the window"),
        ("SCHEDULED", "reminder:r1", "s", "never"),
        ("IMMEDIATE", "immediate:x", None, "after the window"),
        ("MEMORY", "memory:s:1", "s", "when settled"),
        ("PROACTIVE", "proactive:monthly:3", "s", "after two months"),
        ("PROACTIVE", "proactive:hourly:3", "s", "after the window"),
        ("RESUME", "resume:task", "s", "when settled"),
        ("LIVING_UI", "living_ui:p:dev", "s", "when settled"),
        ("SKILL_WORKFLOW", "skill:w:1", None, "never"),
        ("ONBOARDING", "onboarding:u", None, "never"),
        ("SYSTEM", "system:clean:1", "s", "after the window"),
    ],
)
def test_each_source_fires_again_as_its_scope_says(
    bench: Bench, source: str, key: str, session: str | None, refires: str
) -> None:
    def again() -> bool:
        return emitted(bench, TriggerSpec(source, session_id=session, key=key)).created

    first = bench.emit(key, source, session=session)
    assert not again()
    bench.claim(first)
    assert not again()
    bench.kill()
    bench.do(bench.stores.triggers.settle, first)
    assert again() is (refires == "when settled")
    bench.advance(7 * 86_400)
    assert again() is (refires == "after the window")
    bench.advance(55 * 86_400)
    assert again() is (refires in {"after two months", "after the window"})


def test_the_newest_of_a_family_supersedes_the_older_and_takes_its_key(bench: Bench) -> None:
    older = bench.emit("living_ui:p:dev", "LIVING_UI")
    other = bench.emit("living_ui:q:dev", "LIVING_UI")
    newest = bench.emit("living_ui:p:crash", "LIVING_UI")
    row = bench.row(older)
    assert (row.status, row.resolution, row.superseded_by) == ("DONE", "superseded", newest)
    assert row.payload is None
    assert bench.row(other).status is TriggerStatus.PENDING
    assert bench.emit("living_ui:p:dev", "LIVING_UI") == newest
    assert bench.due() in {other, newest}


def test_a_superseded_trigger_keeps_a_key_that_is_taken_for_a_time(bench: Bench) -> None:
    older = bench.emit("proactive:daily:a", "PROACTIVE")
    bench.emit("proactive:daily:b", "PROACTIVE")
    assert bench.row(older).resolution == "superseded"
    assert bench.emit("proactive:daily:a", "PROACTIVE") == older


def test_a_claimed_trigger_is_not_superseded(bench: Bench) -> None:
    older = bench.emit("memory:s:1", "MEMORY")
    bench.claim(older)
    bench.emit("memory:s:2", "MEMORY")
    assert bench.row(older).status is TriggerStatus.CLAIMED


def test_the_same_key_can_be_emitted_in_the_transaction_that_settles_it(bench: Bench) -> None:
    claim = bench.claim(bench.emit("resume:t", "RESUME"))
    spec = TriggerSpec("RESUME", session_id="s", key="resume:t")

    def turn(transaction: Any) -> Emitted:
        bench.stores.triggers.ack(transaction, claim)
        return bench.stores.emitter.emit(transaction, spec)

    assert bench.state.transact(turn).created


def test_a_damaged_trigger_keeps_its_key(bench: Bench) -> None:
    held = bench.emit("resume:t", "RESUME")
    bench.state.close()
    connection = bench.host.database.open(STATE)
    connection.execute("UPDATE triggers SET status='EONE'").fetchall()
    connection.close()
    bench.world.kill()
    bench.boot()
    assert bench.emit("resume:t", "RESUME") == held
    assert emitted(bench, TriggerSpec("RESUME", session_id="s", key="resume:t"), held) == (
        held, False,
    )  # fmt: skip


def test_a_chosen_id_whose_trigger_is_damaged_is_taken(bench: Bench) -> None:
    spec = TriggerSpec("IMMEDIATE", 1, session_id="s")
    emitted(bench, spec, "mine")
    bench.do(lambda transaction: transaction.execute("UPDATE triggers SET reason='changed'"))
    assert emitted(bench, spec, "mine") == Emitted("mine", created=False)


def test_triggers_that_superseded_each_other_leave_no_key(bench: Bench) -> None:
    *_, last = [bench.emit(f"memory:s:{number}", "MEMORY") for number in range(3)]
    settle(bench, last)
    assert bench.do(Transaction.execute, "SELECT key FROM dedup") == []


def test_a_damaged_key_is_refused(bench: Bench) -> None:
    bench.emit("immediate:a")
    bench.do(lambda transaction: transaction.execute("UPDATE dedup SET expires_at=1"))
    with pytest.raises(RowDamaged, match="table=dedup row=immediate:a"):
        bench.emit("immediate:a")


# -- bad input -------------------------------------------------------------------------


def _spec(**members: Any) -> TriggerSpec:
    """Return a specification that a caller without a type checker may pass."""
    return TriggerSpec("IMMEDIATE", **members)


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        (TriggerSpec("SPAM"), BadTrigger, "source='SPAM' is none of MESSAGE, SCHEDULED"),
        (TriggerSpec("MEMORY"), BadTrigger, "source=MEMORY needs a key"),
        (TriggerSpec("MEMORY", key="skill:a:b"), KeyOfAnotherSource, "source=SKILL_WORKFLOW"),
        (TriggerSpec("MEMORY", key="legacy:a"), BadTrigger, "the prefix of no producer"),
        (TriggerSpec("MEMORY", key="memory:a"), BadTrigger, "has not parts=2"),
        (TriggerSpec("MEMORY", key="memory::a"), BadTrigger, "has not parts=2"),
        (TriggerSpec("MEMORY", key="memory:a:\x00"), BadTrigger, "is not a text"),
        (TriggerSpec("IMMEDIATE", key="immediate:" + "a" * 500), BadTrigger, "is not a text"),
        (TriggerSpec("PROACTIVE", key="proactive:never:1"), BadTrigger, "none of hourly, daily"),
        (TriggerSpec("IMMEDIATE", priority=11), BadTrigger, "priority=11 is not from 10 to 10"),
        (TriggerSpec("IMMEDIATE", fire_at=nan), BadTrigger, "the time nan is not a finite"),
        (TriggerSpec("IMMEDIATE", fire_at=-inf), BadTrigger, "the time -inf is not a finite"),
        (_spec(fire_at="1"), BadTrigger, "the time '1' is not a finite number of seconds"),
        (TriggerSpec("IMMEDIATE", fire_at=253402300800.0), BadTrigger, "is after the year 9999"),
        (TriggerSpec("IMMEDIATE", fire_at=3.2e11), BadTrigger, "is after the year 9999"),
        (TriggerSpec("IMMEDIATE", fire_at=10**400), BadTrigger, "is after the year 9999"),
        (
            TriggerSpec("IMMEDIATE", fire_at=-3.2e11),
            BadTrigger,
            "or as long before 1970; see the sec",
        ),
        (TriggerSpec("IMMEDIATE", payload=nan), NotPlainJson, "not a finite number"),
        (TriggerSpec("IMMEDIATE", description="\ud800"), NotPlainJson, "lone surrogate"),
        (TriggerSpec("IMMEDIATE", description="a" * 10_001), BadTrigger, "characters=10001"),
        (_spec(description=7), BadTrigger, "the description 7 is not a text"),
        (_spec(session_id=[]), NoRecipient, r"\[\]: it is not a text"),
        (TriggerSpec("IMMEDIATE", payload="a" * (1 << 20)), PayloadTooLarge, "1048578"),
        (TriggerSpec("RESUME", key="resume:t"), NoRecipient, "are not routed"),
        (TriggerSpec("IMMEDIATE", session_id="gone"), NoRecipient, "session=gone: it is ended"),
        (TriggerSpec("IMMEDIATE", session_id="who"), NoRecipient, "session=who: it is unknown"),
        (TriggerSpec("SCHEDULED", key="scheduled:x:60"), NotAnOccurrence, "next occurrence"),
        (TriggerSpec("SCHEDULED", key="scheduled-once:x"), NotAnOccurrence, "next occurrence"),
    ],
)
def test_bad_input_is_refused_and_writes_nothing(
    bench: Bench, spec: TriggerSpec, error: type[Exception], message: str
) -> None:
    bench.sessions.states["gone"] = SessionStatus.ENDED
    with pytest.raises(error, match=message):
        emitted(bench, spec)
    assert bench.stores.queue.next_due_at() is None
    for count in ("SELECT count(*) FROM triggers", "SELECT count(*) FROM dedup"):
        assert bench.do(Transaction.execute, count) == [(0,)]


@pytest.mark.parametrize("trigger_id", ["", "a b", "ü", "a" * 201])
def test_an_id_that_is_no_id_is_refused(bench: Bench, trigger_id: str) -> None:
    with pytest.raises(BadTrigger, match="is not an id; give 1 to 200 visible ASCII characters"):
        emitted(bench, TriggerSpec("IMMEDIATE", session_id="s"), trigger_id)


def test_the_last_second_of_the_year_9999_is_a_time(bench: Bench) -> None:
    trigger_id = bench.emit(fire_at=253402300799)
    assert bench.row(trigger_id).fire_at == 253402300799


def test_the_session_of_a_trigger_may_be_unserved(bench: Bench) -> None:
    bench.sessions.states["s"] = SessionStatus.UNSERVED
    assert bench.emit()


def test_every_source_has_a_producer_and_every_prefix_one_source() -> None:
    assert {producer.source for producer in PRODUCERS} == set(TriggerSource)
    prefixes = [producer.prefix for producer in PRODUCERS]
    assert sorted(set(prefixes)) == sorted(prefixes)
    for producer in PRODUCERS:
        lowest, highest = producer.priorities
        assert lowest <= producer.priority <= highest


def test_keys_of_scope_window_expire(bench: Bench) -> None:
    begun = bench.now
    first = bench.emit("immediate:a", fire_at=3e9)
    bench.advance(7 * 86_400 - 1)
    assert bench.emit("immediate:a") == first
    bench.advance(begun + 7 * 86_400 + 1 - bench.now)
    second = bench.emit("immediate:a")
    assert second != first
    assert bench.emit("immediate:a") == second


def test_a_trigger_that_is_retried_takes_its_expired_key_again(bench: Bench) -> None:
    first = bench.emit("immediate:a")
    bench.do(bench.stores.triggers.fail, bench.claim(first), "no", retryable=False)
    bench.advance(8 * 86_400)
    bench.do(bench.stores.triggers.retry, first)
    assert bench.emit("immediate:a") == first
    bench.advance(7 * 86_400 + 1)
    assert bench.emit("immediate:a") != first
