"""Triggers that run again: their times, their keys, their attempts, and claims of another turn."""

from __future__ import annotations

import pytest

from system.durable.back_off import pause_ns
from system.durable.ended import Ended, insert_ended
from system.durable.errors import FencedOff, NoRecipient
from system.durable.schedule import ScheduleSpec
from system.durable.seconds import SECOND_NS
from system.durable.state import Transaction
from system.durable.trigger import SessionStatus
from tests.unit.durable.durable_bench import Bench


def keys(bench: Bench) -> list[object]:
    return [key for (key,) in bench.do(Transaction.execute, "SELECT key FROM dedup ORDER BY key")]


@pytest.mark.parametrize("member", ["epoch", "fence"])
def test_a_claim_with_another_epoch_or_fence_settles_nothing(bench: Bench, member: str) -> None:
    claim = bench.claim(bench.emit())
    later = {member: getattr(claim.trigger, member) + 1}
    with pytest.raises(FencedOff):
        bench.do(bench.stores.triggers.ack, claim._replace(trigger=claim.trigger._replace(**later)))
    bench.do(bench.stores.triggers.ack, claim)


def test_no_pause_is_longer_than_an_hour_and_a_quarter(bench: Bench) -> None:
    pauses = [pause_ns(bench.host.ids, attempts) // SECOND_NS for attempts in (7, 8, 50)]
    assert 1_920 <= pauses[0] < 2_400
    assert all(3_600 <= pause < 4_500 for pause in pauses[1:])


def test_a_retried_trigger_is_due_at_its_own_time(bench: Bench) -> None:
    fire_at = bench.now
    trigger_id = bench.emit(fire_at=fire_at)
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "busy")
    bench.advance(60)
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    assert bench.row(trigger_id).not_before is not None

    bench.do(bench.stores.triggers.retry, trigger_id)

    row = bench.row(trigger_id)
    assert (row.not_before, row.due_at) == (None, fire_at)


def test_a_retried_occurrence_takes_no_key(bench: Bench) -> None:
    spec = ScheduleSpec("every", "60", session_id="s")
    bench.do(bench.stores.schedules.create, spec, "a")
    bench.advance(60)
    trigger_id = bench.due() or ""
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    before = keys(bench)

    bench.do(bench.stores.triggers.retry, trigger_id)

    assert bench.due() == trigger_id
    assert keys(bench) == before


def test_a_trigger_that_is_routed_again_has_all_its_attempts(bench: Bench) -> None:
    trigger_id = bench.emit(source="MESSAGE", session=None)
    bench.do(bench.stores.triggers.route, bench.claim(trigger_id), "s")
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "busy")
    assert bench.row(trigger_id).attempts == 1

    bench.do(bench.stores.triggers.end_session, "s")

    row = bench.row(trigger_id)
    assert (row.status, row.session_id, row.attempts) == ("PENDING", None, 0)


def collect(bench: Bench, session_id: str) -> None:
    """Collect an agent: its session is unknown, and has a row."""
    bench.sessions.states[session_id] = SessionStatus.UNKNOWN
    row = Ended("a" * 32, session_id, "Bob", None, None, "operator", 1.0, None)
    bench.do(insert_ended, [row])


def test_a_trigger_whose_session_was_collected_is_not_retried(bench: Bench) -> None:
    trigger_id = bench.emit()
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    collect(bench, "s")
    with pytest.raises(NoRecipient, match="ended"):
        bench.do(bench.stores.triggers.retry, trigger_id)
    assert bench.row(trigger_id).status == "FAILED"


def test_a_routed_trigger_whose_session_was_collected_is_routed_again(bench: Bench) -> None:
    trigger_id = bench.emit(source="MESSAGE", session=None)
    bench.do(bench.stores.triggers.route, bench.claim(trigger_id), "s")
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    collect(bench, "s")
    bench.do(bench.stores.triggers.retry, trigger_id)
    assert (bench.row(trigger_id).session_id, bench.due(None)) == (None, trigger_id)
