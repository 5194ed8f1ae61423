"""Refused decisions and calls of the ledger and the triggers: nothing of the row changes."""

from __future__ import annotations

import pytest

from system.durable.activity import Decision, Unknown
from system.durable.errors import AlreadyDecided, KeyReused
from system.errors import PayloadTooLarge
from system.ports import Performed
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import (
    DEDUP,
    KEY,
    attempt,
    intend,
    read,
    record,
    resolve,
)


def test_the_same_key_with_other_arguments_leaves_the_row(bench: Bench) -> None:
    before = intend(bench)
    with pytest.raises(KeyReused, match="is another call, of action='mail'; use a fresh key"):
        intend(bench, arguments={"to": "Bob"})
    with pytest.raises(KeyReused, match="use a fresh key"):
        intend(bench, DEDUP)
    bench.cut_power()
    assert read(bench) == before


@pytest.mark.parametrize("decision", list(Decision))
def test_a_decided_activity_is_not_decided_again(bench: Bench, decision: Decision) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Performed("ref", None))
    before = read(bench)
    with pytest.raises(
        AlreadyDecided, match="is DONE, so there is nothing to decide; see `status`"
    ):
        resolve(bench, decision, "other")
    bench.cut_power()
    assert read(bench) == before


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_decided_trigger_is_not_decided_again(bench: Bench, is_settled: bool) -> None:
    trigger_id = bench.emit("immediate:a")
    if is_settled:
        bench.do(bench.stores.triggers.ack, bench.claim(trigger_id))
    before = bench.row(trigger_id)
    for decide in (bench.stores.triggers.retry, bench.stores.triggers.discard):
        with pytest.raises(AlreadyDecided, match="so there is nothing to decide; see `status`"):
            bench.do(decide, trigger_id)
    bench.cut_power()
    assert bench.row(trigger_id) == before


@pytest.mark.parametrize("texts", [("x" * (1 << 20), None), ("Eve", "x" * (1 << 20))])
def test_a_decision_that_no_message_can_contain_is_refused(
    bench: Bench, texts: tuple[str, str | None]
) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Unknown("reset"))
    before = read(bench)
    with pytest.raises(PayloadTooLarge, match="is over the limit of 1048576"):
        bench.do(bench.stores.activities.resolve, KEY, Decision.PERFORMED, *texts)
    assert read(bench) == before
