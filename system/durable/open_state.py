"""Opening ``state.db``: its creation, its identity, and its version."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import apsw

from system.durable.errors import (
    ForeignState,
    StateDamaged,
    StateLogDamaged,
    StateMissing,
    StateStopped,
)
from system.durable.schema import APPLICATION_ID, CREATED, MIGRATIONS, VERSION
from system.durable.seconds import SteadyClock
from system.durable.sqlite_log import damaged_at, is_ignored
from system.durable.state import STATE, StateDatabase, Transaction, translated
from system.errors import NewerFormat, RaisingStorageFull, RootInUse
from system.ports import FileSystem, Host, OpenMode
from system.storage.quarantine import move_aside
from system.storage.transfer import read_all, write_all

if TYPE_CHECKING:
    from apsw import Connection

STATE_LOG: Final = "state.db-wal"
_LARGEST_PAGE: Final = 65_536
_SECTOR: Final = 512


def open_state(host: Host, root_id: str | None, clock: SteadyClock | None = None) -> StateDatabase:
    """Open ``state.db``, check whose it is, and migrate it to this version.

    ``root_id`` is that of ``root.json``, None if the root has no database yet. Then the database
    is created, or an interrupted creation is completed, its name is made durable, and the
    caller must write ``StateDatabase.root_id`` to ``root.json``. ``clock`` gives the time of the
    transactions; by default it is a new ``SteadyClock``.

    Raises ``RootInUse``, ``StateMissing``, ``ForeignState``, ``StateDamaged``, ``NewerFormat``,
    ``StorageFull``, ``StateStopped`` or ``OSError``. Then no row was changed, and no migration is
    done in part; a torn first page of a new database may have been moved to quarantine.
    """
    if root_id is not None:
        _check_content(host.files, root_id)
    has_log = _renew_log(host.files)
    _drop_pages(host.files)
    try:
        connection = _connected(host)
    except StateDamaged:
        if root_id is not None or has_log or not _has_one_page(host.files):
            raise
        # A power cut has torn the first page, which SQLite writes before it creates its log. The
        # rollback journal is lost, because SQLite ignores a failed barrier of its directory.
        move_aside(host.files, STATE)
        connection = _connected(host)
    state = StateDatabase(connection, clock or SteadyClock(host.clock), host.workers)
    try:
        _open(state, host, root_id)
    except BaseException:
        state.close()
        raise
    return state


def _connected(host: Host) -> Connection:
    try:
        return host.database.open(STATE)
    except apsw.BusyError:
        raise RootInUse(STATE) from None
    except apsw.Error as failure:
        raise translated(failure) from failure


def state_in_memory(host: Host, connection: Connection) -> StateDatabase:
    """Return the database of a root that has none yet: without rows, on an empty connection."""
    state = StateDatabase(connection, SteadyClock(host.clock), host.workers)
    state.root_id = state.transact(lambda transaction: migrate(transaction, host.ids.uuid_hex()))
    return state


def _check_content(files: FileSystem, root_id: str) -> None:
    """Raise ``StateMissing`` if the file is empty, which SQLite would take for a new database."""
    try:
        size_bytes = _size_bytes(files)
    except FileNotFoundError:
        raise StateMissing(STATE, f"the root {root_id} has lost it") from None
    if not size_bytes:
        raise StateMissing(STATE, f"the root {root_id} has an empty one")


def _has_one_page(files: FileSystem) -> bool:
    size_bytes = _size_bytes(files)
    return size_bytes <= _LARGEST_PAGE and size_bytes % _SECTOR == 0


def _size_bytes(files: FileSystem) -> int:
    file = files.open(STATE, OpenMode.READ)
    try:
        return file.size()
    finally:
        file.close()


def _drop_pages(files: FileSystem) -> None:
    """Let the page cache drop the database, of which a failed barrier may have lost pages.

    SQLite writes them again in its next checkpoint, which ext4 would lose.
    """
    # What refuses this also refuses SQLite, which has an error for it.
    with suppress(OSError):
        files.open(STATE, OpenMode.WRITE).close()


def _renew_log(files: FileSystem) -> bool:
    """Write the write-ahead log of SQLite again, as it reads now, and make it durable.

    Returns whether there is one. Raises ``StateLogDamaged`` if it is certainly damaged.

    After a failed barrier the kernel may show pages that it will never write. SQLite would
    regard them as durable, and acknowledge later commits; the next power cut would leave a gap
    before these.

    A log whose header SQLite refuses is removed. SQLite would take over the salts of a torn
    header, and old frames behind it would look like a part of the new log.
    """
    if files.kind(STATE_LOG) is None:
        return False
    with RaisingStorageFull(STATE_LOG):
        log = files.open(STATE_LOG, OpenMode.WRITE)
        try:
            content = read_all(log)
            offset = damaged_at(content)
            if offset is not None:
                raise StateLogDamaged(STATE_LOG, offset)
            if is_ignored(content):
                files.unlink(STATE_LOG)
            else:
                write_all(log, content, 0)
                log.fsync()
        finally:
            log.close()
        files.sync_dir("")
    return True


def _open(state: StateDatabase, host: Host, root_id: str | None) -> None:
    if state.is_read_only():
        # SQLite opens a file for reading if it cannot open it for writing.
        raise StateStopped(STATE, "it can be opened for reading only")
    # Removed content is overwritten with zeros, so removed bodies do not stay in free pages.
    state.transact(lambda transaction: transaction.execute("PRAGMA secure_delete=ON"))
    state.transact(lambda transaction: check_version(transaction, root_id))
    fresh = host.ids.uuid_hex() if root_id is None else root_id
    state.root_id = state.transact(lambda transaction: migrate(transaction, fresh))
    state.transact(_check_schema)
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


def _check_schema(transaction: Transaction) -> None:
    """Raise ``StateDamaged`` if the description of a table or an index has changed.

    SQLite has read it already. With another name or condition in it, later statements would fail.
    """
    if not CREATED.issubset(sql for (sql,) in transaction.execute("SELECT sql FROM sqlite_schema")):
        raise StateDamaged(STATE, "its tables are not those of this version")


def _version(transaction: Transaction) -> int:
    return _pragma(transaction, "user_version")


def _pragma(transaction: Transaction, name: str) -> int:
    value = transaction.execute(f"PRAGMA {name}")[0][0]
    assert isinstance(value, int)
    return value
