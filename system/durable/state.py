"""``state.db``: its transactions, its identity, and its failures.

All durable work is done in transactions. ``transact`` runs one: when it returns, everything that
its work has written is durable; if it raises, nothing of it has happened. State in memory is
changed by ``Transaction.after_commit``, so it never shows a fact that is not durable.

If a commit fails, and not because of a full disk, it is unknown whether it is durable. So the
database stops: every later transaction raises ``StateStopped`` until the next boot has read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import apsw

from system.durable.commit_group import CommitGroup, Work
from system.durable.errors import (
    ForeignState,
    StateClosed,
    StateDamaged,
    StateMissing,
    StateStopped,
)
from system.durable.schema import APPLICATION_ID, MIGRATIONS, VERSION
from system.durable.seconds import SteadyClock, seconds_of
from system.errors import (
    NewerFormat,
    RootInUse,
    StorageError,
    StorageFull,
    raising_storage_full,
)
from system.ports import FileSystem, Host, OpenMode, Workers
from system.storage.transfer import read_all, write_all

if TYPE_CHECKING:
    from apsw import Connection, SQLiteValue

T = TypeVar("T")
Bindings: TypeAlias = "Sequence[SQLiteValue]"
SqlRow: TypeAlias = "tuple[SQLiteValue, ...]"

STATE: Final = "state.db"
STATE_LOG: Final = "state.db-wal"


class Transaction:
    """One transaction of the database; ``now_ns`` is the time at its beginning.

    It is valid only inside the work that received it.
    """

    __slots__ = ("_committed", "_connection", "now", "now_ns")

    def __init__(self, connection: Connection, now_ns: int) -> None:
        self._connection = connection
        self._committed: list[Callable[[], None]] = []
        self.now_ns = now_ns
        self.now = seconds_of(now_ns)

    def execute(self, statement: str, bindings: Bindings = ()) -> list[SqlRow]:
        """Run one statement and return all its rows."""
        return self._connection.execute(statement, bindings).fetchall()

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

    ``stopped`` is the reason why it accepts no more transactions, or None. Use ``run`` in
    coroutines, and ``transact`` where nothing else uses the database at the same time.
    """

    def __init__(self, connection: Connection, clock: SteadyClock, workers: Workers) -> None:
        self._connection = connection
        self._clock = clock
        self._group = CommitGroup(workers, self._commit)
        self._is_open = True
        self.root_id = ""
        self.stopped: str | None = None

    def now_ns(self) -> int:
        """Return nanoseconds since 1970 that never step back during a boot."""
        return self._clock.now_ns()

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Return ``work(transaction)`` when everything that it has written is durable.

        An exception of ``work`` rolls everything back. Raises ``StorageFull``,
        ``StateDamaged`` (both rolled back), ``StateStopped`` or ``StateClosed``.
        """
        alone = Work(work)
        self._commit_alone(alone)
        alone.finish()
        return alone.result()

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
            transaction = self._begun()
            with self._connection:
                value = work.call(transaction)
        except apsw.Error as failure:
            work.fail(self._stopping(failure))
        except BaseException as failure:
            if not isinstance(failure, Exception):
                raise
            work.fail(failure)
        else:
            work.succeed(value, transaction.finish)

    def _commit_together(self, works: Sequence[Work[Any]]) -> bool:
        """Do works in one transaction; return False, with nothing done, if each needs its own.

        Each needs its own if the disk is full or a page is damaged: then some may succeed.
        """
        if not self._is_open or self.stopped is not None:
            return False
        try:
            with self._connection:
                kept = [_done_in_part(work, self._begun()) for work in works]
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

    def _begun(self) -> Transaction:
        if not self._is_open:
            raise StateClosed
        if self.stopped is not None:
            raise StateStopped(STATE, self.stopped)
        return Transaction(self._connection, self._clock.now_ns())

    def _stopping(self, failure: apsw.Error) -> StorageError:
        """Return the error for a failed transaction; stop unless it was certainly rolled back."""
        error = translated(failure)
        if isinstance(error, StateStopped) or self._connection.in_transaction:
            self.stopped = str(failure)
            error = StateStopped(STATE, self.stopped)
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

        A failure loses nothing: the rest stays in the write-ahead log of SQLite.
        """
        if not self._is_open:
            return
        self._is_open = False
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


def translated(failure: apsw.Error) -> StorageError:
    """Return the error of this package that corresponds to one of SQLite."""
    if isinstance(failure, apsw.FullError):
        return StorageFull(STATE, f"no space left ({failure})")
    if isinstance(failure, apsw.CorruptError | apsw.NotADBError):
        return StateDamaged(STATE, f"SQLite cannot read it ({failure})")
    return StateStopped(STATE, str(failure))


def open_state(host: Host, root_id: str | None, clock: SteadyClock | None = None) -> StateDatabase:
    """Open ``state.db``, check whose it is, and migrate it to this version.

    ``root_id`` is that of ``root.json``, None if the root has no database yet. Then the database
    is created, or an interrupted creation is completed, its name is made durable, and the
    caller must write ``StateDatabase.root_id`` to ``root.json``. ``clock`` gives the time of the
    transactions; by default it is a new ``SteadyClock``.

    Raises ``RootInUse``, ``StateMissing``, ``ForeignState``, ``StateDamaged``, ``NewerFormat``,
    ``StorageFull``, ``StateStopped`` or ``OSError``; then no content was changed.
    """
    if root_id is not None:
        _check_content(host.files, root_id)
    _renew_log(host.files)
    try:
        connection = host.database.open(STATE)
    except apsw.BusyError:
        raise RootInUse(STATE) from None
    except apsw.Error as failure:
        raise translated(failure) from failure
    state = StateDatabase(connection, clock or SteadyClock(host.clock), host.workers)
    try:
        _open(state, host, root_id)
    except BaseException:
        state.close()
        raise
    return state


def state_in_memory(host: Host, connection: Connection) -> StateDatabase:
    """Return the database of a root that has none yet: without rows, on an empty connection."""
    state = StateDatabase(connection, SteadyClock(host.clock), host.workers)
    state.root_id = state.transact(lambda transaction: migrate(transaction, host.ids.uuid_hex()))
    return state


def _check_content(files: FileSystem, root_id: str) -> None:
    """Raise ``StateMissing`` if the file is empty, which SQLite would take for a new database."""
    try:
        file = files.open(STATE, OpenMode.READ)
    except FileNotFoundError:
        raise StateMissing(STATE, f"the root {root_id} has lost it") from None
    try:
        size_bytes = file.size()
    finally:
        file.close()
    if not size_bytes:
        raise StateMissing(STATE, f"the root {root_id} has an empty one")


def _renew_log(files: FileSystem) -> None:
    """Write the write-ahead log of SQLite again, as it reads now, and make it durable.

    After a failed barrier the kernel may show pages that it will never write. SQLite would
    regard them as durable, and acknowledge later commits; the next power cut would leave a gap
    before these.
    """
    if files.kind(STATE_LOG) is None:
        return
    with raising_storage_full(STATE_LOG):
        log = files.open(STATE_LOG, OpenMode.WRITE)
        try:
            content = read_all(log)
            write_all(log, content, 0)
            # The kernel writes a size only if it changes.
            log.truncate(len(content) + 1)
            log.truncate(len(content))
            log.fsync()
        finally:
            log.close()
        files.sync_dir("")


def _open(state: StateDatabase, host: Host, root_id: str | None) -> None:
    if state.is_read_only():
        # SQLite opens a file for reading if it cannot open it for writing.
        raise StateStopped(STATE, "it can be opened for reading only")
    # Removed content is overwritten with zeros, so removed bodies do not stay in free pages.
    state.transact(lambda transaction: transaction.execute("PRAGMA secure_delete=ON"))
    state.transact(lambda transaction: check_version(transaction, root_id))
    fresh = host.ids.uuid_hex() if root_id is None else root_id
    state.root_id = state.transact(lambda transaction: migrate(transaction, fresh))
    # SQLite ignores a failed barrier of the directory in which it has created its log.
    host.files.sync_dir("")
    if root_id not in (None, state.root_id):
        raise ForeignState(STATE, f"it belongs to root_id={state.root_id}, this is {root_id}")


def check_version(transaction: Transaction, root_id: str | None) -> None:
    """Raise ``StateDamaged``, ``StateMissing`` or ``NewerFormat`` if this version cannot use it."""
    application, version = _pragma(transaction, "application_id"), _version(transaction)
    tables = transaction.execute("SELECT count(*) FROM sqlite_schema")[0][0]
    if not application and not version and not tables:
        if root_id is not None:
            raise StateMissing(STATE, f"the root {root_id} has an empty one")
        return
    if application != APPLICATION_ID:
        raise StateDamaged(STATE, f"it has application_id={application:#x}, not a runtime's")
    if version > VERSION:
        raise NewerFormat(STATE, f"it has user_version={version}, known is {VERSION}")


def migrate(transaction: Transaction, root_id: str) -> str:
    """Bring the tables to this version; return the id of the root to which they belong.

    A new database gets ``root_id``.
    """
    version = _version(transaction)
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            transaction.execute(statement)
    if version < VERSION:
        transaction.execute(f"PRAGMA application_id={APPLICATION_ID}")
        transaction.execute(f"PRAGMA user_version={VERSION}")
    if version == 0:
        transaction.execute("INSERT INTO meta (root_id) VALUES (?)", (root_id,))
    found = transaction.execute("SELECT root_id FROM meta")
    if len(found) != 1:
        raise StateDamaged(STATE, f"the table meta has rows={len(found)}, not 1")
    return str(found[0][0])


def _version(transaction: Transaction) -> int:
    return _pragma(transaction, "user_version")


def _pragma(transaction: Transaction, name: str) -> int:
    value = transaction.execute(f"PRAGMA {name}")[0][0]
    assert isinstance(value, int)
    return value
