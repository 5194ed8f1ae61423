"""The creation and migration of ``state.db``, crashed at every operation under every model.

The golden database of each version, and a directory without one, are brought to this version
and changed.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from crash_tests.rig.process_host import host_of
from oracles.history import History, Known
from oracles.violation import InvalidState, LostAck
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from system.durable.applied import APPLIED, applied_seq, record_applied
from system.durable.open_state import open_state
from system.durable.schema import VERSION
from system.durable.state import STATE, StateDatabase, Transaction
from system.durable.table import Table
from system.ports import OpenMode
from tests.meta.source_tree import ROOT as SOURCES
from tests.unit.durable.durable_bench import ROOT
from tests.unit.durable.golden_database import ROWS

VERSIONS = range(VERSION + 1)
OTHER_ROWS = [each for each in ROWS if each[1] is not APPLIED]
GOLDEN_SEQ = 41
SEQ = 42
FEW = Limits(states_per_point=1, samples=1, engine=Engine.BRUTE)


def image_of(version: int) -> Image:
    """Return a disk with the golden database of a version; version 0 has none."""
    disk = Disk(Image.empty())
    if version:
        golden = SOURCES / f"tests/unit/durable/golden/state-{version}.db.gz"
        files = host_of(Process(disk)).files
        file = files.open(STATE, OpenMode.CREATE)
        file.pwrite(gzip.decompress(golden.read_bytes()), 0)
        file.fsync()
        file.close()
        files.sync_dir("")
    return disk.power_cut(SurvivorSet())


def reading(table: Table[Any], key: tuple[str | int, ...]) -> Callable[[Transaction], object]:
    """Return the transaction that reads a row."""
    return lambda transaction: table.read(transaction, *key)


def seq_of(transaction: Transaction) -> int:
    return applied_seq(transaction, "s")


@pytest.mark.stress
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_crash_at_any_operation_leaves_a_database_of_this_version(
    version: int, model: str
) -> None:
    def opened(process: Process, root_id: str | None) -> StateDatabase:
        return open_state(host_of(process), ROOT if version else root_id)

    def migrate(process: Process, ack: History) -> None:
        state = opened(process, None)
        ack(state.root_id)
        ack.attempt(SEQ)
        state.transact(lambda transaction: record_applied(transaction, "s", SEQ))
        ack(SEQ)
        state.close()

    def check(process: Process, known: Known) -> None:
        root_id, *seqs = known.acknowledged or (None,)
        state = opened(process, root_id if isinstance(root_id, str) else None)
        found = state.transact(seq_of)
        for since, table, row, key in OTHER_ROWS:
            kept = state.transact(reading(table, key))
            if kept != (row if since <= version else None):
                raise InvalidState("a row is lost or changed", expected=row, actual=kept)
        if root_id not in (None, state.root_id):
            raise InvalidState("another root", expected=root_id, actual=state.root_id)
        least = SEQ if seqs else GOLDEN_SEQ * bool(version)
        if found not in (least, SEQ if SEQ in known.in_flight else least):
            raise LostAck("a line is lost", expected=least, actual=found)
        state.close()

    result = explore(migrate, check, model, FEW, image_of(version))
    assert not result.failures, str(result)
