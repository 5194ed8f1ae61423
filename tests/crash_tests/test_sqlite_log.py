"""No crash leaves a write-ahead log of SQLite that the runtime takes for damaged."""

from __future__ import annotations

from functools import partial

import apsw
import pytest

from crash_tests.rig.database import SimulatedDatabase
from crash_tests.rig.process_host import host_of
from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from system.durable.open_state import open_state
from system.durable.state import STATE, StateDatabase, Transaction

ROWS_OF_A_SPILL = 12
LIMITS = Limits(states_per_point=2, samples=12, engine=Engine.BRUTE)


def insert(connection: apsw.Connection, number: int, size_bytes: int) -> None:
    connection.execute("INSERT INTO t VALUES (?, ?)", (number, bytes(size_bytes)))


def work(process: Process, ack: History) -> None:
    """Commit rows, roll back a transaction that was spilled, restart the log, and so again."""
    open_state(host_of(process), None).close()
    connection = SimulatedDatabase(process).open(STATE)
    connection.execute("PRAGMA cache_size=2; CREATE TABLE t (number PRIMARY KEY, body)")
    for number in range(9):
        ack.attempt(number)
        insert(connection, number, 2_500 if number % 3 else 10)
        ack(number)
        if number % 4 == 1:
            connection.execute("BEGIN")
            for spilled in range(ROWS_OF_A_SPILL):
                insert(connection, 100 + spilled, 1_000)
            connection.execute("ROLLBACK")
        if number % 4 == 3:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)


def numbers_in(state: StateDatabase) -> set[object]:
    tables = "SELECT count(*) FROM sqlite_schema WHERE name='t'"
    if not state.transact(lambda transaction: transaction.execute(tables))[0][0]:
        return set()
    query = "SELECT number FROM t WHERE number < 50"
    return {row[0] for row in state.transact(lambda transaction: transaction.execute(query))}


def insert_once(transaction: Transaction, number: int) -> None:
    statement = "INSERT OR IGNORE INTO t VALUES (?, zeroblob(2000))"
    transaction.execute(statement, (number,))


def check(process: Process, known: Known) -> None:
    """Open the database, and commit behind the log that the crash has left."""
    state = open_state(host_of(process), None)
    found = numbers_in(state)
    if not found >= set(known.acknowledged):
        raise LostAck("a row", expected=known.acknowledged, actual=sorted(map(str, found)))
    for number in range(50, 52) if found else ():
        state.transact(partial(insert_once, number=number))


@pytest.mark.stress
@pytest.mark.parametrize("model", MODELS)
def test_no_crash_leaves_a_log_that_is_called_damaged(model: str) -> None:
    result = explore(work, check, model, LIMITS)
    assert not result.failures, str(result)
