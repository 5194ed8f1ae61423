"""The tables of ``state.db``: their columns, and equal tables whatever version they began with."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import apsw
import pytest

from system.durable.open_state import open_state
from system.durable.schema import MIGRATIONS, VERSION
from system.durable.state import STATE
from system.host import real_host
from tests.unit.durable.durable_bench import ROOT
from tests.unit.durable.golden_database import GOLDEN

COLUMNS: Final = {
    "meta": "root_id TEXT!",
    "triggers": "id TEXT! key, source TEXT!, dedup_key TEXT, session_id TEXT, fire_at REAL!,"
    " not_before REAL, due_at REAL!, priority INTEGER!, description TEXT, payload_json TEXT!,"
    " status TEXT!, attempts INTEGER! =0, epoch INTEGER, fence INTEGER! =0, lease_until REAL,"
    " missed INTEGER! =0, routed INTEGER! =0, resolution TEXT, superseded_by TEXT, reason TEXT,"
    " created_at REAL!, updated_at REAL!, crc TEXT!",
    "dedup": "key TEXT! key, source TEXT!, scope TEXT!, expires_at REAL, trigger_id TEXT!,"
    " crc TEXT!",
    "schedules": "schedule_id TEXT! key, kind TEXT!, spec TEXT!, zone TEXT!, session_id TEXT,"
    " priority INTEGER!, description TEXT, payload_json TEXT!, catch_up TEXT!,"
    " last_nominal INTEGER, next_fire_at INTEGER, paused INTEGER! =0, dead_in_row INTEGER! =0,"
    " reason TEXT, ended_at REAL, created_at REAL!, updated_at REAL!, crc TEXT!",
    "tasks": "task_id TEXT! key, session_id TEXT!, status TEXT!, todos_json TEXT!,"
    " last_seq INTEGER!, turn_id TEXT, reason TEXT, created_at REAL!, updated_at REAL!, crc TEXT!",
    "task_events": "task_id TEXT! key, seq INTEGER! key, ts REAL!, event TEXT!, data_json TEXT!,"
    " crc TEXT!",
    "activity_log": "idem_key TEXT! key, task_id TEXT, session_id TEXT, turn_id TEXT, action TEXT!,"
    " class TEXT!, provider_dedup INTEGER!, arguments_json TEXT!, arguments_hash TEXT!,"
    " status TEXT!, attempts INTEGER! =0, epoch INTEGER, provider_ref TEXT, result_json TEXT,"
    " reason TEXT, decided_by TEXT, created_at REAL!, updated_at REAL!, crc TEXT!",
    "applied": "session_id TEXT! key, seq INTEGER!, crc TEXT!",
    "known_ids": "session_id TEXT! key, id TEXT! key, kept_until REAL, crc TEXT!",
    "ended": "agent_id TEXT! key, session_id TEXT!, name TEXT!, parent_session_id TEXT,"
    " request_id TEXT, how TEXT!, ended_at REAL!, archive TEXT, crc TEXT!",
    "reports": "message_id TEXT! key, session_id TEXT, payload_json TEXT!, crc TEXT!",
    "conversations": "provider TEXT! key, identity TEXT! key, session_id TEXT!, crc TEXT!",
}
"""By table: each column with its type, ``!`` for NOT NULL, and its default."""


def made(version: int) -> apsw.Connection:
    """Return a new database of a version."""
    connection = apsw.Connection("")
    for statement in (each for statements in MIGRATIONS[:version] for each in statements):
        connection.execute(statement)
    return connection


def schema(connection: apsw.Connection) -> set[tuple[object, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema"))


def golden(version: int, folder: Path) -> Path:
    path = folder / STATE
    path.write_bytes(gzip.decompress((GOLDEN / f"state-{version}.db.gz").read_bytes()))
    return path


def shown(columns: Iterable[tuple[object, ...]]) -> str:
    return ", ".join(
        f"{name} {kind}{'!' * bool(is_filled)}"
        f"{' key' * bool(key)}{'' if default is None else f' ={default}'}"
        for _, name, kind, is_filled, default, key in columns
    )


def test_the_columns_of_every_table() -> None:
    connection = made(VERSION)
    names = [str(name) for kind, name, _, _ in schema(connection) if kind == "table"]
    assert {
        name: shown(connection.execute(f"PRAGMA table_info({name})")) for name in names
    } == COLUMNS
    unique = [
        index
        for name in ("dedup", "ended")
        for _, index, is_unique, origin, _ in connection.execute(f"PRAGMA index_list({name})")
        if is_unique and origin == "u"
    ]
    assert len(unique) == 2  # The session and the request of an ended agent.


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_the_statements_of_a_version_are_never_changed(version: int, tmp_path: Path) -> None:
    found = apsw.Connection(str(golden(version, tmp_path)))
    assert schema(found) == schema(made(version))


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_migrated_database_has_the_tables_of_a_new_one(version: int, tmp_path: Path) -> None:
    path = golden(version, tmp_path)
    open_state(real_host(str(tmp_path)), ROOT).close()
    assert schema(apsw.Connection(str(path))) == schema(made(VERSION))
