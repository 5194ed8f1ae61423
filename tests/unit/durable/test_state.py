"""``state.db``: transactions, identity, versions and failures."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from crash_tests.rig.database import PAGE_BYTES
from sim.errors import SimulatedCrash
from system.durable.applied import APPLIED, Applied, applied_seq, check_applied, record_applied
from system.durable.errors import (
    ForeignState,
    RowDamaged,
    StateClosed,
    StateDamaged,
    StateMissing,
    StateOutdated,
    StateStopped,
)
from system.durable.open_state import STATE_LOG, open_state
from system.durable.schema import APPLICATION_ID, VERSION
from system.durable.state import STATE, Transaction
from system.durable.table import Table
from system.errors import NewerFormat, RootInUse, StorageError, StorageFull
from system.host import real_host
from system.ports import OpenMode
from tests.unit.durable.durable_bench import ROOT, Bench
from tests.unit.durable.golden_database import GOLDEN, ROWS


def seq_of(bench: Bench) -> int:
    return bench.state.transact(lambda transaction: applied_seq(transaction, "s"))


def apply(bench: Bench, seq: int) -> bool:
    return bench.state.transact(lambda transaction: record_applied(transaction, "s", seq))


def spoil(bench: Bench, *statements: str) -> None:
    """Close the database, change it with SQLite, and leave it closed."""
    bench.state.close()
    connection = bench.host.database.open(STATE)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


# -- transactions ----------------------------------------------------------------------


def test_a_part_that_fails_leaves_nothing_in_the_database_or_in_memory(bench: Bench) -> None:
    done: list[str] = []

    def part(transaction: Transaction) -> None:
        record_applied(transaction, "s", 7)
        transaction.after_commit(lambda: done.append("part"))
        raise ValueError("no")

    def work(transaction: Transaction) -> None:
        transaction.after_commit(lambda: done.append("before"))
        with pytest.raises(ValueError, match="no"):
            transaction.part(lambda: part(transaction))
        transaction.after_commit(lambda: done.append("after"))

    bench.state.transact(work)
    assert (done, seq_of(bench)) == (["before", "after"], 0)


def test_a_transaction_is_durable_when_it_returns(bench: Bench) -> None:
    assert apply(bench, 5)
    bench.cut_power()
    assert seq_of(bench) == 5


def test_an_exception_of_the_work_undoes_all_of_it(bench: Bench) -> None:
    called: list[str] = []

    def work(transaction: Transaction) -> None:
        transaction.after_commit(lambda: called.append("committed"))
        record_applied(transaction, "s", 5)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        bench.state.transact(work)
    assert seq_of(bench) == 0
    assert called == []


def test_calls_after_the_commit_are_made_in_their_order(bench: Bench) -> None:
    called: list[int] = []

    def work(transaction: Transaction) -> None:
        transaction.after_commit(lambda: called.append(1))
        transaction.after_commit(lambda: called.append(2))
        assert called == []

    bench.state.transact(work)
    assert called == [1, 2]


def test_coroutines_run_one_transaction_after_the_other(bench: Bench) -> None:
    called: list[int] = []

    def work(transaction: Transaction) -> bool:
        transaction.after_commit(lambda: called.append(7))
        return record_applied(transaction, "s", 7)

    async def both() -> tuple[bool, bool]:
        first = bench.world.loop.create_task(bench.state.run(work))
        second = bench.world.loop.create_task(bench.state.run(work))
        return await first, await second

    assert bench.world.loop.run_until_complete(both()) == (True, False)
    assert called == [7, 7]


def test_time_does_not_step_back_during_a_boot(bench: Bench) -> None:
    before = bench.clock.now_ns()
    bench.world.clock.step_wall(-(10**15))
    assert bench.clock.now_ns() >= before
    bench.world.clock.step_wall(2 * 10**15)
    assert bench.clock.now_ns() > before + 10**14


def test_a_line_is_applied_once(bench: Bench) -> None:
    assert [apply(bench, seq) for seq in (3, 3, 2, 4)] == [True, False, False, True]
    assert seq_of(bench) == 4


def test_a_database_that_is_older_than_its_logs_is_refused(bench: Bench) -> None:
    apply(bench, 4)
    bench.state.transact(lambda transaction: check_applied(transaction, "s", 4))
    with pytest.raises(StateOutdated, match="has applied seq=4, its log 5"):
        bench.state.transact(lambda transaction: check_applied(transaction, "s", 5))


# -- failures --------------------------------------------------------------------------


def test_a_full_disk_undoes_the_transaction_and_no_more(bench: Bench) -> None:
    faults = bench.fail("write *state.db-wal #1 ENOSPC")
    with pytest.raises(StorageFull, match=r"state\.db: no space left .* make room"):
        apply(bench, 5)
    assert faults.fired == (1,)
    assert seq_of(bench) == 0
    assert apply(bench, 6)
    bench.cut_power()
    assert seq_of(bench) == 6


def test_a_failed_barrier_stops_the_database_until_the_next_boot(bench: Bench) -> None:
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    with pytest.raises(StateStopped, match="repair the disk"):
        apply(bench, 5)
    with pytest.raises(StateStopped):
        seq_of(bench)
    assert bench.state.stopped is not None
    bench.kill()
    assert seq_of(bench) in {0, 5}
    assert apply(bench, 6)


def test_a_crash_inside_of_a_transaction_comes_out_as_it_is(bench: Bench) -> None:
    def work(transaction: Transaction) -> None:
        record_applied(transaction, "s", 5)
        raise SimulatedCrash("here")

    with pytest.raises(SimulatedCrash):
        bench.state.transact(work)


def test_a_closed_database_takes_nothing(bench: Bench) -> None:
    bench.state.close()
    bench.state.close()
    with pytest.raises(StateClosed, match="open the runtime again"):
        seq_of(bench)


def test_a_failure_of_the_last_checkpoint_loses_nothing(bench: Bench) -> None:
    apply(bench, 5)
    bench.fail("write *state.db #1 EIO")
    bench.state.close()
    bench.kill()
    assert seq_of(bench) == 5


def test_a_malformed_page_is_reported(bench: Bench) -> None:
    apply(bench, 5)
    spoil(bench, "PRAGMA writable_schema=ON",
          "UPDATE sqlite_schema SET rootpage=10000 WHERE name='applied'")  # fmt: skip
    with pytest.raises(StateDamaged, match="SQLite cannot read it"):
        bench.kill()


def test_a_page_that_changes_while_it_is_in_use_is_reported(bench: Bench) -> None:
    apply(bench, 5)
    bench.state.close()
    bench.kill()
    page = bench.state.transact(
        lambda transaction: transaction.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name='applied'"
        )
    )[0][0]
    assert isinstance(page, int)
    bench.host.files.open(STATE, OpenMode.WRITE).pwrite(
        b"\xff" * PAGE_BYTES, (page - 1) * PAGE_BYTES
    )
    with pytest.raises(StateDamaged, match="SQLite cannot read it"):
        seq_of(bench)
    assert bench.state.stopped is None


# -- identity and versions -------------------------------------------------------------


def test_a_database_knows_its_root(bench: Bench) -> None:
    first = bench.root_id
    bench.kill()
    assert bench.root_id == first


def test_an_interrupted_creation_is_completed_under_its_first_id(bench: Bench) -> None:
    first = bench.root_id
    bench.world.kill()
    bench.host = bench.world.boot()
    assert open_state(bench.host, None).root_id == first


def test_the_database_of_another_root_is_refused(bench: Bench) -> None:
    bench.state.close()
    with pytest.raises(ForeignState, match=f"root_id={bench.root_id}, this is {ROOT}"):
        open_state(bench.host, ROOT)


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_a_root_whose_database_is_gone_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / STATE).write_bytes(content)
    with pytest.raises(StateMissing, match="restore it"):
        open_state(real_host(str(tmp_path)), ROOT)


def test_a_newer_database_is_refused_and_stays_as_it_is(bench: Bench) -> None:
    spoil(bench, f"PRAGMA user_version={VERSION + 1}")
    with pytest.raises(NewerFormat, match=rf"user_version={VERSION + 1}, known is {VERSION}"):
        open_state(bench.host, bench.root_id)
    connection = bench.host.database.open(STATE)
    assert connection.execute("PRAGMA user_version").fetchall() == [(VERSION + 1,)]


def test_the_database_of_another_program_is_refused(bench: Bench) -> None:
    spoil(bench, "PRAGMA application_id=7")
    with pytest.raises(StateDamaged, match="application_id=0x7"):
        open_state(bench.host, bench.root_id)


def test_a_database_without_its_identity_is_refused(bench: Bench) -> None:
    spoil(bench, "DELETE FROM meta")
    with pytest.raises(StateDamaged, match="meta has rows=0"):
        open_state(bench.host, bench.root_id)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / STATE).write_bytes(b"no database at all\n" * 100)
    with pytest.raises(StateDamaged, match="not a database"):
        open_state(real_host(str(tmp_path)), None)


def test_a_torn_first_page_is_put_aside_if_the_root_never_had_a_database(tmp_path: Path) -> None:
    torn, host = b"stale" * 1024, real_host(str(tmp_path))
    (tmp_path / STATE).write_bytes(torn)
    with pytest.raises(StateDamaged, match="not a database"):
        open_state(host, "the marker names it")
    open_state(host, None).close()
    assert (tmp_path / f"{STATE}.quarantine.1").read_bytes() == torn


def test_an_unreadable_page_is_not_put_aside_beside_a_log(tmp_path: Path) -> None:
    (tmp_path / STATE).write_bytes(b"stale" * 1024)
    (tmp_path / STATE_LOG).write_bytes(b"log")
    with pytest.raises(StateDamaged, match="not a database"):
        open_state(real_host(str(tmp_path)), None)
    assert STATE in os.listdir(tmp_path)


def test_a_database_in_use_is_refused(tmp_path: Path) -> None:
    first = open_state(real_host(str(tmp_path)), None)
    with pytest.raises(RootInUse):
        open_state(real_host(str(tmp_path)), first.root_id)
    first.close()


def test_a_database_that_can_only_be_read_is_refused(bench: Bench) -> None:
    bench.state.close()
    bench.fail("open *state.db #3 EMFILE")
    with pytest.raises(StateStopped, match="it can be opened for reading only"):
        open_state(bench.host, bench.root_id)
    open_state(bench.host, bench.root_id).close()


@pytest.mark.parametrize("number", range(1, 9))
def test_a_boot_that_may_open_no_file_for_writing_is_refused(bench: Bench, number: int) -> None:
    bench.emit()
    bench.world.kill()
    host = bench.world.boot()
    injector = bench.fail(f"open * #{number} EMFILE")
    try:
        state = open_state(host, bench.root_id)
    except (OSError, StorageError):
        assert injector.fired == (1,)
    else:
        injector.remove()
        bench.state = state
        assert apply(bench, 1)


def test_a_commit_behind_one_whose_barrier_has_failed_survives(bench: Bench) -> None:
    """The next boot sees the first commit in the page cache only."""
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    with pytest.raises(StateStopped):
        apply(bench, 5)
    bench.kill()
    assert apply(bench, 6)
    bench.cut_power()
    assert seq_of(bench) == 6


def test_the_name_of_the_log_is_durable_although_sqlite_ignores_its_barrier(bench: Bench) -> None:
    bench.state.close()
    injector = bench.fail("fsync / EIO:ext4")
    with pytest.raises(OSError, match="Input/output"):
        open_state(bench.host, bench.root_id)
    assert sum(injector.fired) >= 1


def test_a_full_disk_creates_nothing() -> None:
    bench = Bench()
    bench.state.close()
    bench.host.files.unlink(STATE)
    bench.fail("write *state.db-wal ENOSPC")
    with pytest.raises(StorageFull):
        open_state(bench.host, None)


def reading(table: Table[Any], key: tuple[str | int, ...]) -> Callable[[Transaction], object]:
    return lambda transaction: table.read(transaction, *key)


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_golden_database_of_each_version_is_read(version: int, tmp_path: Path) -> None:
    golden = (GOLDEN / f"state-{version}.db.gz").read_bytes()
    (tmp_path / STATE).write_bytes(gzip.decompress(golden))
    state = open_state(real_host(str(tmp_path)), ROOT)
    for since, table, row, key in ROWS:
        found = state.transact(reading(table, key))
        assert found == (row if since <= version else None)
    state.close()
    connection = apsw.Connection(str(tmp_path / STATE))
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("user_version") == VERSION
    connection.close()


# -- rows ------------------------------------------------------------------------------


def test_a_changed_row_is_reported_and_kept(bench: Bench) -> None:
    apply(bench, 5)
    spoil(bench, "UPDATE applied SET seq=4")
    bench.kill()
    with pytest.raises(RowDamaged, match=r"table=applied row=s has another crc"):
        seq_of(bench)
    with pytest.raises(RowDamaged):
        apply(bench, 6)


def test_a_row_that_is_no_text_is_reported(bench: Bench) -> None:
    apply(bench, 5)
    spoil(bench, "UPDATE applied SET crc=CAST(x'ff' AS TEXT)")
    bench.kill()
    with pytest.raises(RowDamaged):
        seq_of(bench)


def test_a_removed_row_leaves_no_trace_in_the_file(bench: Bench) -> None:
    apply(bench, 5)
    bench.state.transact(lambda transaction: APPLIED.insert(transaction, Applied("secret", 1)))
    bench.state.transact(lambda transaction: APPLIED.delete(transaction, "secret"))
    bench.state.close()
    assert b"secret" not in bench.host.files.read(STATE)[0]
