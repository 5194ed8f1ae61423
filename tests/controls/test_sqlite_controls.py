"""SQLite, an independently proven database, as the test of the disk under every model.

A failure of a setting that must pass is a bug of the simulator. A pass of a setting that must
fail means that the disk is too forgiving.

SQLite documents (``pragma.html#pragma_synchronous``): WAL with FULL and a rollback
journal with EXTRA lose nothing. DELETE with FULL can roll back the last commit after a
power loss, because the removal of the journal is not synced. WAL with NORMAL loses
commits, and corrupts nothing. OFF can corrupt the database.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw
import pytest

from oracles.history import History, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.explore import explore
from powercut.explorer.judge import Check
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import Workload
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.sqlite.connection import abandon, connect
from sim.sqlite.device import device_of
from tests.sample import in_the_gate

ROWS = 2
LIMITS = Limits(states_per_point=128, samples=32, engine=Engine.BRUTE)
# Enough to find the failure of a setting that is known to be unsafe.
FEW = Limits(states_per_point=16, samples=8, engine=Engine.BRUTE)
NORMAL, EXCLUSIVE = "normal", "exclusive"


@dataclass(frozen=True, slots=True)
class Settings:
    """The pragmas of the database."""

    mode: str
    synchronous: str
    locking: str = EXCLUSIVE
    page_bytes: int = 512

    def __str__(self) -> str:
        return f"{self.mode}-{self.synchronous}-{self.locking}-{self.page_bytes}"


def one_table(settings: Settings) -> Workload:
    """Return a workload that creates a table and inserts rows, one in each transaction.

    It acknowledges the number of rows. A WAL is checkpointed after each row, because that
    is where an unsafe one does damage.
    """

    def workload(process: Process, acknowledge: History) -> None:
        connection = connect(process, "/db")
        connection.pragma("page_size", settings.page_bytes)
        connection.pragma("locking_mode", settings.locking)
        connection.pragma("journal_mode", settings.mode)
        connection.pragma("synchronous", settings.synchronous)
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        acknowledge(0)
        for row in range(1, ROWS + 1):
            connection.execute("INSERT INTO t VALUES (?, ?)", (row, f"row {row} " * 20))
            acknowledge(row)
            if settings.mode == "wal":
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        abandon(connection)

    return workload


def read_rows(process: Process) -> list[int] | None:
    """Recover and return the rows, or None if there is no table; raise a violation if damaged."""
    connection = connect(process, "/db")
    try:
        connection.pragma("locking_mode", EXCLUSIVE)
        report = list(connection.execute("PRAGMA integrity_check"))
        if report != [("ok",)]:
            raise Violation("the database is damaged", report=report)
        if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
            return None
        return [row for (row,) in connection.execute("SELECT a FROM t ORDER BY a")]
    finally:
        abandon(connection)


def nothing_is_lost(process: Process, known: Known) -> None:
    """Every acknowledged row exists, and beside them at most the one in flight."""
    rows = read_rows(process)
    allowed: list[list[int] | None] = [
        list(range(1, int(str(count)) + 1))
        for count in (*known.acknowledged[-1:], *known.in_flight)
    ]
    if not known.acknowledged:
        allowed.append(None)
    if rows not in allowed:
        raise LostAck("not the rows that were acknowledged", expected=allowed, actual=rows)


def nothing_is_damaged(process: Process, known: Known) -> None:
    """The database is intact, and has the first rows without a gap."""
    rows = read_rows(process)
    if rows is not None and rows != list(range(1, len(rows) + 1)):
        raise Violation("rows exist without those before them", rows=rows)


def explored(
    settings: Settings, model: str, check: Check = nothing_is_lost, limits: Limits = LIMITS
) -> Exploration:
    return explore(one_table(settings), check, model, limits)


PAGE_BYTES = (512, 1024, 4096, 65536)
PROVEN = [
    *(Settings("wal", "full", EXCLUSIVE, page_bytes) for page_bytes in PAGE_BYTES),
    *(
        Settings(mode, "extra", NORMAL, page_bytes)
        for mode in ("delete", "truncate", "persist")
        for page_bytes in PAGE_BYTES
    ),
    Settings("wal", "extra", EXCLUSIVE, 1024),
    Settings("delete", "extra", EXCLUSIVE, 512),
    Settings("delete", "extra", EXCLUSIVE, 4096),
    Settings("truncate", "full", NORMAL, 512),
    Settings("truncate", "full", EXCLUSIVE, 4096),
    Settings("persist", "full", NORMAL, 512),
    Settings("persist", "full", EXCLUSIVE, 4096),
]


WEAKEST = tuple({device_of(model): name for name, model in MODELS.items()}.values())
"""Of the models that give SQLite the same device, the one that allows all that the others allow."""


def _is_in_the_gate(case: tuple[Settings, str]) -> bool:
    """Return whether a proven setting is explored under this model in the gate.

    Small pages are under ``posix``, and those of 4096 bytes, for the WAL and one other journal,
    under the weakest model of each other device.
    """
    settings, model = case
    if model == "posix":
        return settings.page_bytes == 512
    is_usual = settings.page_bytes == 4096 and settings.mode in {"wal", "delete"}
    return model in WEAKEST and is_usual


PROVEN_CASES = [(settings, model) for settings in PROVEN for model in MODELS]
weakest_models = pytest.mark.parametrize("model", in_the_gate(MODELS, WEAKEST.__contains__))
every_model = pytest.mark.parametrize(
    "model", in_the_gate(MODELS, {"scc", "btrfs", "posix"}.__contains__)
)


@pytest.mark.parametrize(
    ("settings", "model"),
    in_the_gate(PROVEN_CASES, _is_in_the_gate),
    ids=[f"{settings}-{model}" for settings, model in PROVEN_CASES],
)
def test_a_proven_setting_loses_nothing_and_damages_nothing(settings: Settings, model: str) -> None:
    exploration = explored(settings, model)
    assert exploration.failures == []
    assert exploration.states > exploration.operations


@weakest_models
@pytest.mark.parametrize(
    "settings", [Settings("wal", "full"), Settings("delete", "extra", NORMAL)], ids=str
)
def test_a_proven_setting_survives_crashes_in_its_recovery(settings: Settings, model: str) -> None:
    limits = Limits(states_per_point=12, samples=2, nested=1, engine=Engine.BRUTE)
    exploration = explored(settings, model, limits=limits)
    assert exploration.failures == []


@every_model
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_without_barriers_acknowledged_rows_are_lost(mode: str, model: str) -> None:
    assert not explored(Settings(mode, "off"), model, limits=FEW).safe


@pytest.mark.parametrize(
    "model",
    # The others order all writes.
    in_the_gate(
        [model for model in MODELS if model not in {"scc", "ext4-journal"}],
        {"ext4-ordered", "posix"}.__contains__,
    ),
)
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_without_barriers_the_database_is_damaged(mode: str, model: str) -> None:
    assert not explored(Settings(mode, "off"), model, nothing_is_damaged, FEW).safe


@every_model
def test_a_reappearing_journal_rolls_back_an_acknowledged_commit(model: str) -> None:
    settings = Settings("delete", "full", NORMAL)
    lossy = explored(settings, model, limits=FEW)
    assert {type(failure.violation) for failure in lossy.failures} == {LostAck}
    assert explored(settings, model, nothing_is_damaged, FEW).safe


@every_model
def test_wal_with_normal_loses_commits_and_damages_nothing(model: str) -> None:
    settings = Settings("wal", "normal")
    assert not explored(settings, model, limits=FEW).safe
    assert explored(settings, model, nothing_is_damaged, FEW).failures == []


def test_a_device_flag_that_the_disk_does_not_justify_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    justified = device_of(MODELS["xfs"])
    flags = justified.characteristics | apsw.SQLITE_IOCAP_SAFE_APPEND
    unjustified = justified._replace(characteristics=flags)
    monkeypatch.setattr("sim.sqlite.vfs.device_of", lambda _model: unjustified)
    settings = Settings("delete", "extra", EXCLUSIVE, 512)
    assert {type(failure.violation) for failure in explored(settings, "xfs").failures} == {LostAck}


def two_databases(process: Process, acknowledge: History) -> None:
    """Insert a row into two databases, both in one transaction, with a super-journal."""
    connection = connect(process, "/db")
    for name in ("main", "other"):
        if name == "other":
            connection.execute("ATTACH '/other' AS other")
        connection.execute(f"PRAGMA {name}.page_size=512")
        connection.execute(f"PRAGMA {name}.synchronous=EXTRA")
        connection.execute(f"CREATE TABLE {name}.t (a INTEGER PRIMARY KEY)")
    acknowledge(0)
    with connection:
        connection.execute("INSERT INTO main.t VALUES (1)")
        connection.execute("INSERT INTO other.t VALUES (1)")
    acknowledge(1)
    abandon(connection)


def both_have_the_same(process: Process, known: Known) -> None:
    """A transaction over two databases is in both or in none."""
    nothing_is_lost(process, known)
    if known.acknowledged:
        connection = connect(process, "/db")
        connection.execute("ATTACH '/other' AS other")
        rows = connection.execute(
            "SELECT (SELECT count(*) FROM main.t), (SELECT count(*) FROM other.t)"
        ).get
        abandon(connection)
        if rows[0] != rows[1]:
            raise Violation("a transaction is in one database only", rows=rows)


@weakest_models
def test_a_transaction_over_two_databases_is_in_both_or_in_none(model: str) -> None:
    limits = Limits(states_per_point=32, samples=8, engine=Engine.BRUTE)
    assert explore(two_databases, both_have_the_same, model, limits).failures == []


def spilled(settings: Settings) -> Workload:
    """Return a workload whose transaction is larger than the page cache of its connection."""

    def workload(process: Process, acknowledge: History) -> None:
        connection = connect(process, "/db")
        for pragma in (
            f"page_size={settings.page_bytes}",
            f"locking_mode={settings.locking}",
            f"journal_mode={settings.mode}",
            f"synchronous={settings.synchronous}",
            "cache_size=3",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        acknowledge(0)
        operations = process.disk.operations
        with connection:
            for row in range(1, SPILLED_ROWS + 1):
                connection.execute("INSERT INTO t VALUES (?, ?)", (row, "x" * 400))
            assert process.disk.operations > operations, "nothing was written before the commit"
        acknowledge(SPILLED_ROWS)
        abandon(connection)

    return workload


SPILLED_ROWS = 8


@weakest_models
@pytest.mark.parametrize(
    "settings", [Settings("wal", "full"), Settings("delete", "extra", NORMAL)], ids=str
)
def test_a_transaction_that_spills_the_cache_is_whole_or_missing(
    settings: Settings, model: str
) -> None:
    limits = Limits(states_per_point=32, samples=8, engine=Engine.BRUTE)
    assert explore(spilled(settings), nothing_is_lost, model, limits).failures == []


@every_model
def test_a_transaction_that_spills_the_cache_without_barriers_is_damaged(model: str) -> None:
    settings = Settings("delete", "off", NORMAL)
    assert not explore(spilled(settings), nothing_is_lost, model, FEW).safe
