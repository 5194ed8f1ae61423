"""``state.db``: its transactions and its failures.

All durable work is done in transactions. ``transact`` runs one: when it returns, everything that
its work has written is durable; if it raises, nothing of it has happened. State in memory is
changed by ``Transaction.after_commit``, so it never shows a change that is not durable.

If a commit fails, and not because of a full disk or quota, it is unknown whether it is durable. So
the database stops: every later transaction raises ``StateStopped`` until the next boot has read it.
It also stops if the barrier of a checkpoint fails.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import apsw

from system.durable.commit_group import CommitGroup, Work
from system.durable.errors import StateClosed, StateDamaged, StateStopped
from system.durable.seconds import SteadyClock, seconds_of
from system.durable.sqlite_checkpoint import SqliteCheckpoint
from system.errors import StorageError, StorageFull
from system.ports import Workers

if TYPE_CHECKING:
    from apsw import Connection, SQLiteValue

T = TypeVar("T")
Bindings: TypeAlias = "Sequence[SQLiteValue]"
SqlRow: TypeAlias = "tuple[SQLiteValue, ...]"

STATE: Final = "state.db"


class Transaction:
    """One transaction of the database; ``now_ns`` is the time at its beginning.

    It is valid only inside the work that received it.
    """

    __slots__ = ("_committed", "_connection", "_cursor", "now", "now_ns")

    def __init__(self, connection: Connection, now_ns: int) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._committed: list[Callable[[], None]] = []
        self.now_ns = now_ns
        self.now = seconds_of(now_ns)

    def execute(self, statement: str, bindings: Bindings = ()) -> list[SqlRow]:
        """Run one statement and return all its rows."""
        return self._cursor.execute(statement, bindings).fetchall()

    def changes(self) -> int:
        """Return the number of rows that the last statement has changed."""
        return self._connection.changes()

    def last_row(self) -> int:
        """Return the number of the row that was inserted last."""
        return self._connection.last_insert_rowid()

    def part(self, work: Callable[[], T]) -> T:
        """Return ``work()``; if it raises, only its own changes are rolled back."""
        before = len(self._committed)
        try:
            with self._connection:
                result = work()
        except BaseException:
            del self._committed[before:]
            raise
        return result

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call ``call`` when the transaction is durable; if it fails, ``call`` is never called."""
        self._committed.append(call)

    def finish(self) -> None:
        """Make the calls of ``after_commit``, in their order; for ``StateDatabase``."""
        for call in self._committed:
            call()


class StateDatabase:
    """The open database of the root with this ``root_id``.

    Use ``run`` in coroutines, and ``transact`` where nothing else uses the database at the same
    time.
    """

    def __init__(self, connection: Connection, clock: SteadyClock, workers: Workers) -> None:
        self._connection = connection
        self._clock = clock
        self._group = CommitGroup(workers, self._commit)
        self._checkpoint = SqliteCheckpoint(connection)
        self._is_open = True
        self.root_id = ""
        self._stopped: str | None = None

    @property
    def stopped(self) -> str | None:
        """The reason why it accepts no more transactions, or None."""
        return self._stopped or self._checkpoint.failure

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Return ``work(transaction)`` when everything that it has written is durable.

        An exception of ``work`` rolls everything back. Raises ``StorageFull``,
        ``StateDamaged`` (both rolled back), ``StateStopped`` or ``StateClosed``.
        """
        value, following = self._committed(work)
        following()
        return value

    async def run(self, work: Callable[[Transaction], T]) -> T:
        """Do the same in another thread; works that wait at the same time share one commit.

        Each work sees the changes of those before it. If a work raises, only its own changes
        are rolled back. A transaction that was started runs to its end, also if the caller is
        cancelled.
        """
        return await self._group.run(work)

    def _commit(self, works: Sequence[Work[Any]]) -> None:
        if len(works) == 1 or not self._commit_together(works):
            for work in works:
                self._commit_alone(work)

    def _commit_alone(self, work: Work[Any]) -> None:
        try:
            value, following = self._committed(work.call)
        except BaseException as failure:
            if not isinstance(failure, Exception):
                raise
            work.fail(failure)
        else:
            work.succeed(value, following)

    def _committed(self, call: Callable[[Transaction], T]) -> tuple[T, Callable[[], None]]:
        """Return the result of ``call`` in its own transaction, and the call that follows it."""
        if not self._is_open:
            raise StateClosed
        if self.stopped is not None:
            raise StateStopped(STATE, self.stopped)
        transaction = Transaction(self._connection, self._clock.now_ns())
        try:
            with self._connection:
                value = call(transaction)
        except apsw.Error as failure:
            raise self._stopping(failure) from failure
        return value, transaction.finish

    def _commit_together(self, works: Sequence[Work[Any]]) -> bool:
        """Do works in one transaction; return False, with nothing done, if each needs its own.

        Each needs its own if the disk is full or a page is damaged: then some may succeed.
        """
        if not self._is_open or self.stopped is not None:
            return False
        try:
            with self._connection:
                now_ns = self._clock.now_ns()
                kept = [
                    _done_in_part(work, Transaction(self._connection, now_ns)) for work in works
                ]
        except apsw.Error as failure:
            if not isinstance(self._stopping(failure), StateStopped):
                return False
            for work in works:
                # One exception cannot be raised in several tasks.
                work.fail(self._stopping(failure))
            return True
        for keep in kept:
            keep()
        return True

    def _stopping(self, failure: apsw.Error) -> StorageError:
        """Return the error for a failed transaction; stop unless it was certainly rolled back."""
        cause = failure if self._connection.in_transaction else _cause_of(failure)
        error = translated(cause, self._connection.system_errno)
        if isinstance(error, StateStopped) or self._connection.in_transaction:
            self._stopped = str(cause)
            error = StateStopped(STATE, self._stopped)
        error.__cause__ = failure
        return error

    def is_read_only(self) -> bool:
        """Return whether SQLite could open the file, or its log, for reading only."""
        if self._connection.readonly("main"):
            return True
        try:
            # It opens the log, and writes nothing.
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.ReadOnlyError:
            return True
        except apsw.Error as failure:
            raise translated(failure) from failure
        self._connection.execute("ROLLBACK")
        return False

    def close(self) -> None:
        """Move all content into the database file, and close it; a second call does nothing.

        A database that has stopped is closed as it is. A failure loses nothing: the rest stays in
        the write-ahead log of SQLite.
        """
        if not self._is_open:
            return
        self._is_open = False
        if self.stopped is not None:
            self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        with suppress(apsw.Error):
            self._connection.close()


def _done_in_part(work: Work[Any], transaction: Transaction) -> Callable[[], None]:
    """Do a work as a part of a transaction; return the call that stores its result.

    After an exception only the changes of the work are rolled back; errors of SQLite are raised.
    """
    try:
        value = transaction.part(partial(work.call, transaction))
    except BaseException as failure:
        if isinstance(failure, apsw.Error) or not isinstance(failure, Exception):
            raise
        return partial(work.fail, failure)
    return partial(work.succeed, value, transaction.finish)


def _cause_of(failure: apsw.Error) -> apsw.Error:
    """Return the error after which SQLite has rolled the transaction back by itself.

    SQLite does so if, for instance, the disk is full before the commit, because the changes are
    larger than its cache. Then each savepoint is gone, and its rollback raises a ``SQLError``.
    """
    cause = failure
    while isinstance(cause, apsw.SQLError) and isinstance(cause.__context__, apsw.Error):
        cause = cause.__context__
    return cause


def translated(failure: apsw.Error, system_errno: int = 0) -> StorageError:
    """Return the error of this package that corresponds to one of SQLite.

    ``system_errno`` is that of the call of the operating system that has failed. SQLite knows a
    full disk, and no quota that is full; it rolls the transaction back in both cases.
    """
    is_refused_write = getattr(failure, "extendedresult", 0) == apsw.SQLITE_IOERR_WRITE
    if isinstance(failure, apsw.FullError) or (is_refused_write and system_errno == errno.EDQUOT):
        return StorageFull(STATE, f"no space left ({failure})")
    if isinstance(failure, apsw.CorruptError | apsw.NotADBError):
        return StateDamaged(STATE, f"SQLite cannot read it ({failure})")
    return StateStopped(STATE, str(failure))
