"""The tables of ``state.db``, and the migrations from version to version.

``application_id`` marks the database of a runtime, ``user_version`` is the version of its tables.
Each migration leads from one version to the next. All needed migrations run in one transaction,
before any other write. Version 1 is never edited: a change is a new migration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

APPLICATION_ID: Final = 0x50435354
"""``PCST``: marks a database of this runtime."""

VERSION_1: Final[Sequence[str]] = (
    "CREATE TABLE meta (root_id TEXT NOT NULL) STRICT",
    """CREATE TABLE triggers (
        id TEXT NOT NULL PRIMARY KEY, source TEXT NOT NULL, dedup_key TEXT, session_id TEXT,
        fire_at REAL NOT NULL, not_before REAL, due_at REAL NOT NULL, priority INTEGER NOT NULL,
        description TEXT, payload_json TEXT NOT NULL, status TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, epoch INTEGER, fence INTEGER NOT NULL DEFAULT 0,
        lease_until REAL, missed INTEGER NOT NULL DEFAULT 0, routed INTEGER NOT NULL DEFAULT 0,
        resolution TEXT, superseded_by TEXT, reason TEXT,
        created_at REAL NOT NULL, updated_at REAL NOT NULL, crc TEXT NOT NULL) STRICT""",
    "CREATE INDEX idx_triggers_due ON triggers (status, fire_at)",
    "CREATE INDEX idx_triggers_due_at ON triggers (status, due_at)",
    "CREATE INDEX idx_triggers_session ON triggers (session_id, status)",
    """CREATE TABLE dedup (
        key TEXT NOT NULL PRIMARY KEY, source TEXT NOT NULL, scope TEXT NOT NULL,
        expires_at REAL, trigger_id TEXT NOT NULL, crc TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE schedules (
        schedule_id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, spec TEXT NOT NULL,
        zone TEXT NOT NULL, session_id TEXT, priority INTEGER NOT NULL, description TEXT,
        payload_json TEXT NOT NULL, catch_up TEXT NOT NULL, last_nominal INTEGER,
        next_fire_at INTEGER, paused INTEGER NOT NULL DEFAULT 0,
        dead_in_row INTEGER NOT NULL DEFAULT 0, reason TEXT, ended_at REAL,
        created_at REAL NOT NULL, updated_at REAL NOT NULL, crc TEXT NOT NULL) STRICT""",
    """CREATE TABLE tasks (
        task_id TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL, status TEXT NOT NULL,
        todos_json TEXT NOT NULL, last_seq INTEGER NOT NULL, turn_id TEXT, reason TEXT,
        created_at REAL NOT NULL, updated_at REAL NOT NULL, crc TEXT NOT NULL) STRICT""",
    "CREATE INDEX idx_tasks_session ON tasks (session_id, status)",
    "CREATE INDEX idx_tasks_status ON tasks (status)",
    """CREATE TABLE task_events (
        task_id TEXT NOT NULL, seq INTEGER NOT NULL, ts REAL NOT NULL, event TEXT NOT NULL,
        data_json TEXT NOT NULL, crc TEXT NOT NULL,
        PRIMARY KEY (task_id, seq)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE activity_log (
        idem_key TEXT NOT NULL PRIMARY KEY, task_id TEXT, session_id TEXT, turn_id TEXT,
        action TEXT NOT NULL, class TEXT NOT NULL, provider_dedup INTEGER NOT NULL,
        arguments_json TEXT NOT NULL, arguments_hash TEXT NOT NULL, status TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0, epoch INTEGER, provider_ref TEXT, result_json TEXT,
        reason TEXT, decided_by TEXT,
        created_at REAL NOT NULL, updated_at REAL NOT NULL, crc TEXT NOT NULL) STRICT""",
    "CREATE INDEX idx_activity_status ON activity_log (status, updated_at)",
    """CREATE TABLE applied (
        session_id TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL,
        crc TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE known_ids (
        session_id TEXT NOT NULL, id TEXT NOT NULL, kept_until REAL, crc TEXT NOT NULL,
        PRIMARY KEY (session_id, id)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE ended (
        agent_id TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
        parent_session_id TEXT, request_id TEXT UNIQUE, how TEXT NOT NULL,
        ended_at REAL NOT NULL, archive TEXT, crc TEXT NOT NULL) STRICT, WITHOUT ROWID""",
)

VERSION_2: Final[Sequence[str]] = (
    """CREATE TABLE reports (
        message_id TEXT NOT NULL PRIMARY KEY, session_id TEXT, payload_json TEXT NOT NULL,
        crc TEXT NOT NULL) STRICT""",
)

VERSION_3: Final[Sequence[str]] = (
    # One index is enough: times are ordered in memory. It stays as it is when a trigger is claimed
    # or fails. Queries repeat its condition.
    "DROP INDEX idx_triggers_due",
    "DROP INDEX idx_triggers_due_at",
    "DROP INDEX idx_triggers_session",
    "CREATE INDEX idx_triggers_session ON triggers (session_id) WHERE status<>'DONE'",
    # A boot, and each removal of settled rows, finds them without reading the others.
    "CREATE INDEX idx_triggers_settled ON triggers (updated_at) WHERE status='DONE'",
    "CREATE INDEX idx_dedup_holder ON dedup (trigger_id) WHERE scope='active'",
    "CREATE INDEX idx_dedup_expires ON dedup (expires_at) WHERE expires_at IS NOT NULL",
    "CREATE INDEX idx_known_ids_until ON known_ids (kept_until) WHERE kept_until IS NOT NULL",
    "CREATE INDEX idx_ended_archive ON ended (ended_at) WHERE archive IS NOT NULL",
    """CREATE TABLE conversations (
        provider TEXT NOT NULL, identity TEXT NOT NULL, session_id TEXT NOT NULL,
        crc TEXT NOT NULL, PRIMARY KEY (provider, identity)) STRICT, WITHOUT ROWID""",
)

MIGRATIONS: Final[Sequence[Sequence[str]]] = (VERSION_1, VERSION_2, VERSION_3)
"""The statements of each migration; the first one makes the tables of version 1."""

VERSION: Final = len(MIGRATIONS)


def _created() -> frozenset[str]:
    statements = [each for migration in MIGRATIONS for each in migration]
    dropped = {each.split()[2] for each in statements if each.startswith("DROP INDEX ")}
    made = [each for each in statements if each.startswith("CREATE ")]
    return frozenset(each for each in made if each.split()[2] not in dropped)


CREATED: Final = _created()
"""The statements that SQLite keeps as the description of the tables and indexes."""
