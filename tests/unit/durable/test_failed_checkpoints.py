"""A checkpoint of ``state.db`` whose barrier fails loses no commit, whatever follows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sim.disk.cache.operation import SyncFailure
from system.durable.errors import StateStopped
from tests.unit.durable.durable_bench import Bench

_BODY = "x" * 8_000
_MANY = 100
"""Triggers with such a body, after which there was a checkpoint."""


def _emit(bench: Bench, emitted: list[str], number: int = _MANY) -> None:
    emitted.extend(bench.emit(payload=_BODY) for _ in range(number))


def _close(bench: Bench) -> None:
    bench.state.close()
    bench.kill()


@pytest.mark.parametrize("end", [Bench.kill, Bench.cut_power, _close])
@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.BTRFS])
@pytest.mark.parametrize("nth", [1, 2])
def test_no_commit_is_lost_if_the_barrier_of_a_checkpoint_fails(
    nth: int, policy: SyncFailure, end: Callable[[Bench], None]
) -> None:
    bench, emitted = Bench(), list[str]()
    faults = bench.fail(f"fsync */state.db #{nth} EIO:{policy}")
    with pytest.raises(StateStopped, match="repair the disk"):
        _emit(bench, emitted, 3 * _MANY)
    faults.assert_fired()
    faults.lift()
    with pytest.raises(StateStopped, match="repair the disk"):
        bench.emit()
    end(bench)
    _emit(bench, emitted)
    bench.cut_power()
    assert [bench.row(each).status for each in emitted] == ["PENDING"] * len(emitted)


def test_a_checkpoint_that_the_disk_refuses_is_repeated() -> None:
    bench, emitted = Bench(), list[str]()
    faults = bench.fail("write */state.db #1 EIO")
    _emit(bench, emitted)
    faults.assert_fired()
    assert bench.state.stopped is None
    bench.cut_power()
    assert [bench.row(each).status for each in emitted] == ["PENDING"] * _MANY
