"""Writes ``golden/state-N.db.gz``, a database of each version with a row in each of its tables.

``python -m tests.unit.durable.golden_database`` writes those that are missing. A file is made
once, with its version, and never written again.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import apsw

from system.durable.activity import ACTIVITIES, Activity, ActivityStatus
from system.durable.applied import APPLIED, Applied
from system.durable.dedup import DEDUP, DedupKey
from system.durable.ended import CONVERSATIONS, ENDED, Ended, EndedConversation
from system.durable.known_ids import KNOWN_IDS, KnownId
from system.durable.producers import Scope
from system.durable.recurrence import ScheduleKind
from system.durable.report import REPORTS, Report
from system.durable.schedule import SCHEDULES, CatchUp, Schedule
from system.durable.schema import APPLICATION_ID, MIGRATIONS, VERSION
from system.durable.state import STATE, Transaction
from system.durable.table import Table
from system.durable.task import TASK_EVENTS, TASKS, Task, TaskEvent, TaskStatus
from system.durable.trigger import TRIGGERS, Trigger, TriggerSource, TriggerStatus
from system.ports import SideEffectClass
from system.storage.database_pragmas import DATABASE_PRAGMAS
from tests.unit.durable.durable_bench import ROOT

GOLDEN: Final = Path(__file__).parent / "golden"
AT: Final = 1_700_000_000.5
SESSION: Final = "5" * 32

TRIGGER: Final = Trigger(
    "t", TriggerSource.SCHEDULED, "scheduled:day:1700000000", SESSION, AT, AT + 1, AT + 1, 30,
    "about it", '{"x":1}', TriggerStatus.PENDING, 2, 7, 3, None, 4, True, None, None, "it failed",
    AT, AT,
)  # fmt: skip
SCHEDULE: Final = Schedule(
    "day", ScheduleKind.CRON, "0 9 * * *", "Europe/Berlin", SESSION, 30, None, "null",
    CatchUp.LATEST, 1_699_999_000, 1_700_000_000, False, 1, None, None, AT, AT,
)  # fmt: skip
ACTIVITY: Final = Activity(
    "activity:k", "task", SESSION, None, "pay", SideEffectClass.IRREVERSIBLE, True, "{}", "0",
    ActivityStatus.UNCERTAIN, 1, 7, None, None, "no answer", None, AT, AT,
)  # fmt: skip

ROWS: Final[list[tuple[int, Table[Any], Any, tuple[str | int, ...]]]] = [
    (1, APPLIED, Applied("s", 41), ("s",)),
    (1, TRIGGERS, TRIGGER, ("t",)),
    (1, DEDUP, DedupKey(str(TRIGGER.dedup_key), "SCHEDULED", Scope.FOREVER, None, "t"),
     (str(TRIGGER.dedup_key),)),
    (1, SCHEDULES, SCHEDULE, ("day",)),
    (1, TASKS, Task("task", SESSION, TaskStatus.WAITING, "[]", 1, None, None, AT, AT), ("task",)),
    (1, TASK_EVENTS, TaskEvent("task", 1, AT, "begun", "null"), ("task", 1)),
    (1, ACTIVITIES, ACTIVITY, ("activity:k",)),
    (1, KNOWN_IDS, KnownId(SESSION, "m", None), (SESSION, "m")),
    (1, ENDED, Ended("a" * 32, "e" * 32, "Bob", SESSION, None, "operator", AT, None), ("a" * 32,)),
    (2, REPORTS, Report("t.dead", None, "null"), ("t.dead",)),
    (3, CONVERSATIONS, EndedConversation("p", "c", "e" * 32), ("p", "c")),
]  # fmt: skip
"""The version since which there is a row, its table, the row, and its key."""


def write(version: int, target: Path) -> None:
    """Write the database of a version to ``target``."""
    with TemporaryDirectory() as directory:
        connection = apsw.Connection(str(Path(directory, STATE)))
        for pragma in DATABASE_PRAGMAS:
            connection.execute(pragma).fetchall()
        transaction = Transaction(connection, 0)
        for statement in (each for statements in MIGRATIONS[:version] for each in statements):
            transaction.execute(statement)
        transaction.execute(f"PRAGMA application_id={APPLICATION_ID}")
        transaction.execute(f"PRAGMA user_version={version}")
        transaction.execute("INSERT INTO meta (root_id) VALUES (?)", (ROOT,))
        for since, table, row, _ in ROWS:
            if since <= version:
                table.insert(transaction, row)
        connection.close()
        target.write_bytes(gzip.compress(Path(directory, STATE).read_bytes(), mtime=0))


if __name__ == "__main__":
    for each in range(1, VERSION + 1):
        path = GOLDEN / f"state-{each}.db.gz"
        if not path.exists():
            write(each, path)
