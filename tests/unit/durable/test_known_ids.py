"""The table of ids that logs have forgotten."""

from __future__ import annotations

from system.durable.known_ids import is_known, keep_ids
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from tests.unit.durable.durable_bench import Bench

DAYS = 86_400


def test_ids_of_the_operator_are_known_for_ever(bench: Bench) -> None:
    bench.do(keep_ids, "s", ["a", "b"], are_acknowledged=False)
    bench.advance(1000 * DAYS)
    bench.do(remove_settled)
    assert bench.do(is_known, "s", "a")
    assert not bench.do(is_known, "other", "a")


def test_acknowledged_ids_are_known_for_thirty_days_from_the_first_time_on(bench: Bench) -> None:
    bench.do(keep_ids, "s", ["a"], are_acknowledged=True)
    bench.advance(20 * DAYS)
    bench.do(keep_ids, "s", ["a"], are_acknowledged=True)
    bench.advance(10 * DAYS - 1)
    assert bench.do(is_known, "s", "a")
    bench.advance(1)
    assert not bench.do(is_known, "s", "a")
    assert bench.do(remove_settled) == 1


def test_a_damaged_id_is_known_and_stays(bench: Bench) -> None:
    bench.do(keep_ids, "s", ["a"], are_acknowledged=True)
    bench.do(Transaction.execute, "UPDATE known_ids SET crc='00000000'")
    bench.advance(31 * DAYS)
    assert bench.do(remove_settled) == 0
    assert bench.do(is_known, "s", "a")
