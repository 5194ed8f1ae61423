"""Transactions that are larger than the cache of SQLite: it writes pages before the commit."""

from __future__ import annotations

import asyncio

import pytest

from crash_tests.rig.database import PAGE_BYTES
from system.durable.errors import StateStopped
from system.durable.state import Transaction
from system.durable.trigger import TriggerSpec
from system.errors import StorageFull
from tests.unit.durable.durable_bench import Bench


def overflow(bench: Bench, number: int) -> list[object]:
    """Run transactions that are larger than the cache of SQLite, at the same time."""
    bench.do(lambda transaction: transaction.execute("PRAGMA cache_size=4"))
    spec = TriggerSpec("IMMEDIATE", "x" * 10 * PAGE_BYTES, session_id="s")

    def emit_many(transaction: Transaction) -> None:
        for _ in range(10):
            transaction.part(lambda: bench.stores.emitter.emit(transaction, spec))

    async def at_once() -> list[object]:
        works = (bench.state.run(emit_many) for _ in range(number))
        return list(await asyncio.gather(*works, return_exceptions=True))

    results = bench.world.loop.run_until_complete(at_once())
    assert bench.stores.queue.next_due_at() is None
    return results


@pytest.mark.parametrize("number", [1, 3])
def test_a_disk_that_is_full_before_the_commit_undoes_the_transaction_and_no_more(
    bench: Bench, number: int
) -> None:
    faults = bench.fail("write *state.db-wal #1+ ENOSPC")
    results = overflow(bench, number)
    assert faults.fired
    assert [type(each) for each in results] == [StorageFull] * number
    assert bench.state.stopped is None
    faults.remove()
    small = bench.emit()
    bench.cut_power()
    assert bench.do(bench.stores.triggers.open_rows) == [bench.row(small)]


def test_a_disk_that_fails_before_the_commit_stops_the_database(bench: Bench) -> None:
    bench.fail("write *state.db-wal #1+ EIO")
    results = overflow(bench, 3)
    assert [type(each) for each in results] == [StateStopped] * 3
    assert "Input/output error" in str(bench.state.stopped)
