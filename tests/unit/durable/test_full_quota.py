"""A quota that is full: SQLite has no error of its own for it."""

from __future__ import annotations

import errno

import pytest

from sim.disk.cache.operation import Write
from system.durable.errors import StateStopped
from system.errors import StorageFull
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_large_transactions import overflow
from tests.unit.durable.test_state import apply, seq_of
from tests.unit.sqlite.test_faults import Faulty


def test_a_full_quota_undoes_the_transaction_and_no_more(bench: Bench) -> None:
    bench.world.disk.interposer = Faulty(Write, "/state.db-wal", errno.EDQUOT, times=1)
    with pytest.raises(StorageFull, match=r"state\.db: no space left .* make room"):
        apply(bench, 5)
    assert seq_of(bench) == 0
    assert apply(bench, 6)
    bench.cut_power()
    assert seq_of(bench) == 6


def test_another_failed_write_stops_the_database_also_after_a_full_quota(bench: Bench) -> None:
    for number, error in ((errno.EDQUOT, StorageFull), (errno.EIO, StateStopped)):
        bench.world.disk.interposer = Faulty(Write, "/state.db-wal", number, times=1)
        with pytest.raises(error):
            apply(bench, 5)
    assert bench.state.stopped is not None


@pytest.mark.parametrize("number", [1, 3])
def test_a_quota_that_is_full_before_the_commit_undoes_the_transaction_and_no_more(
    bench: Bench, number: int
) -> None:
    faults = Faulty(Write, "/state.db-wal", errno.EDQUOT)
    bench.world.disk.interposer = faults
    results = overflow(bench, number)
    assert faults.fired
    assert [type(each) for each in results] == [StorageFull] * number
    assert bench.state.stopped is None
    bench.world.disk.interposer = None
    small = bench.emit()
    bench.cut_power()
    assert bench.do(bench.stores.triggers.open_rows) == [bench.row(small)]
