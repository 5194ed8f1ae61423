"""The errors of ``state.db``: ``StorageError``s about the data, and refusals of calls.

Each docstring gives the cause, then the cure. ``StorageFull``, ``NewerFormat`` and
``RootInUse`` are those of ``system.errors``.
"""

from __future__ import annotations

from system.errors import RuntimeRefused, StorageError
from system.foreign import shown


class StateStopped(StorageError):
    """The database has stopped; it is unknown whether the last transaction is durable.

    Cause: a commit failed, and not because of a full disk.
    Cure: repair the disk and start the runtime again; a call with the same key or id then
    returns what is durable.
    """

    cure = "repair the disk and start the runtime again; repeat the call to learn its result"


class StateDamaged(StorageError):
    """The content of the database differs from the one that was written.

    Cause: the disk or another program changed ``state.db``, or it is no database of a runtime.
    Cure: restore ``state.db`` from a copy that is not older than the logs.
    """

    cure = "restore it from a copy that is not older than the logs"


class RowDamaged(StateDamaged):
    """The checksum of one row does not match its content; the other rows can be used.

    The row is neither used nor removed, and its key stays taken.
    Cause: the disk or another program changed the file.
    Cure: read the row with ``sqlite3``, and repair or remove it while the root is not in use.
    """

    cure = "read it with sqlite3, and repair or remove it while the root is not in use"
    problem = "has another crc than its content"

    def __init__(self, path: str, table: str, key: str) -> None:
        super().__init__(path, f"table={table} row={key} {self.problem}")
        self.table = table
        self.key = key


class RowHidden(RowDamaged):
    """A row is there, and SQLite does not find it by its key; the other rows can be used.

    A call that took the row for missing would do its work a second time.
    Cause: the disk or another program changed an index, or the key of a row beside it.
    Cure: run ``REINDEX`` with ``sqlite3`` while the root is not in use, or remove the row whose key
    is out of order.
    """

    cure = "run REINDEX with sqlite3 while the root is not in use"
    problem = "is not found by its key"


class StateLogDamaged(StateDamaged):
    """The write-ahead log of SQLite is damaged before commits that were durable.

    SQLite would ignore all commits from there on, so nothing is opened or changed.
    Cause: the disk or another program changed ``state.db-wal``.
    Cure: restore ``state.db`` and ``state.db-wal`` together, from one copy that is not older than
    the logs; if the copy has no ``state.db-wal``, remove the damaged one.
    """

    cure = "restore state.db and state.db-wal from one copy that is not older than the logs"

    def __init__(self, path: str, offset: int) -> None:
        super().__init__(path, f"damaged at offset={offset}, before commits that were durable")
        self.offset = offset


class StateMissing(StorageError):
    """The root had a ``state.db``, and has none now.

    It is not created again, because effects whose outcome is not known would be lost.
    Cause: it was removed, or a root was copied without it. Cure: restore it.
    """

    cure = "restore it from a copy that is not older than the logs"


class ForeignState(StorageError):
    """The database belongs to another root.

    Cause: a ``state.db`` that was copied from another root. Cure: restore the right one.
    """

    cure = "restore the one that belongs to this root"


class StateOutdated(StorageError):
    """The database is older than the logs of its root.

    Cause: an older copy of ``state.db`` was restored. With it, settled work would be repeated.
    Cure: restore a copy that is not older than the logs.
    """

    cure = "restore a copy that is not older than the logs"


class StateClosed(RuntimeRefused):
    """The database was closed. Cure: open the runtime again."""

    def __init__(self) -> None:
        super().__init__("state.db is closed; open the runtime again")


class BadTrigger(RuntimeRefused):
    """A trigger cannot be emitted as it is described.

    Cause: an unknown source, a malformed key, a priority outside the producer's range, or a time
    that is not finite. Cure: see the section on triggers in ``docs/durable.md``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; see the section on triggers in docs/durable.md")


class KeyOfAnotherSource(RuntimeRefused):
    """A dedup key begins with the prefix of another source.

    Cure: use the prefix of the trigger's own source.
    """

    def __init__(self, key: str, source: str, owner: str) -> None:
        super().__init__(
            f"key={key!r:.200} of a trigger of source={source} belongs to source={owner};"
            " use the prefix of its own source"
        )


class NotAnOccurrence(RuntimeRefused):
    """A key names an occurrence that is not the next one of a living schedule.

    Cause: the occurrence was fired or passed over, or the schedule has ended or never existed.
    Cure: none is needed; the schedule emits its occurrences itself.
    """

    def __init__(self, key: str) -> None:
        super().__init__(
            f"key={key!r:.200} is not the next occurrence of a living schedule;"
            " the schedule emits its occurrences itself"
        )


class NoRecipient(RuntimeRefused):
    """A trigger or schedule names no session that can take it.

    Cause: the session has ended or never existed, or none is named and the producer's triggers
    are not routed. Cure: name the session of a living agent.
    """

    def __init__(self, session_id: str | None, reason: str) -> None:
        super().__init__(
            f"session={session_id!s:.100}: {reason}; name the session of a living agent"
        )
        self.session_id = session_id


class FencedOff(RuntimeRefused):
    """A claim no longer holds its trigger; nothing was changed.

    Cause: the trigger was reclaimed, settled or claimed again meanwhile.
    Cure: drop the work; the newer claim settles it.
    """

    def __init__(self, trigger_id: str, fence: int, found: str) -> None:
        super().__init__(
            f"trigger {trigger_id!r}: the claim fence={fence} does not hold it any more,"
            f" it is {found}; drop the work, the newer claim settles it"
        )


class UnknownTrigger(RuntimeRefused):
    """No trigger has this id. Cure: take the ids from ``triggers list``."""

    def __init__(self, trigger_id: str) -> None:
        super().__init__(f"trigger {shown(trigger_id, 100)}: there is none; see `triggers list`")


class AlreadyDecided(RuntimeRefused):
    """The row is decided already, or still under way; nothing was changed.

    Cure: decide only about rows that ``triggers dead`` or ``activities list`` shows.
    """

    def __init__(self, named: str, found: str) -> None:
        super().__init__(f"{named} is {found}, so there is nothing to decide; see `status`")


class BadSchedule(RuntimeRefused):
    """A schedule cannot be created as it is described.

    Cause: an unknown kind or zone, or a specification that is malformed or has no future time.
    Cure: see the section on schedules in ``docs/durable.md``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; see the section on schedules in docs/durable.md")


class UnknownSchedule(RuntimeRefused):
    """No living schedule has this id. Cure: take the ids from ``schedules``."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"schedule {shown(schedule_id, 100)}: none is living; see `schedules`")


class BadTask(RuntimeRefused):
    """A checkpoint cannot be recorded as it is.

    Cause: it has no event, names another session than its task, or its task has ended.
    Cure: the message names it.
    """


class StaleCheckpoint(RuntimeRefused):
    """A checkpoint follows another event than the last one of its task; nothing was changed.

    Cause: another turn of the task was committed meanwhile. Cure: read the task and try again.
    """

    def __init__(self, task_id: str, expected: int, found: int) -> None:
        super().__init__(
            f"task {task_id!r}: the checkpoint follows last_seq={expected}, the task has"
            f" last_seq={found}; read the task and try again"
        )


class BadActivity(RuntimeRefused):
    """An activity cannot be recorded as it is described.

    Cause: a malformed key, arguments that are too large, an action that is not IRREVERSIBLE, a
    task that is unknown or has ended, or a decision that does not exist, or that names no person.
    Cure: see the section on activities in ``docs/durable.md``.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; see the section on activities in docs/durable.md")


class KeyReused(RuntimeRefused):
    """An idempotency key names another action, or the same one with other arguments.

    Cure: use a fresh key for each activity.
    """

    def __init__(self, key: str, action: str) -> None:
        super().__init__(
            f"activity {key!r:.200} is another call, of action={action!r}; use a fresh key"
        )


class UnknownActivity(RuntimeRefused):
    """No activity has this key. Cure: take the keys from ``activities list``."""

    def __init__(self, key: str) -> None:
        super().__init__(f"activity {shown(key, 200)}: there is none; see `activities list`")
