"""The root of a runtime: the marker ``root.json``, the lock, and the boot epoch.

``root.json`` is durable before any other file is created, so after every crash a directory with
data of the runtime has it. ``runtime.lock`` is never unlinked: a waiter would
lock the old inode and a later process the new one. It holds the boot epoch, in two slots that
are written in turn, so that one of them is always whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from system.errors import BadSeal, NewerFormat, NotARoot, RaisingStorageFull, RootInUse
from system.ports import File, FileSystem, Ids, JsonObject, OpenMode
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.codec import seal, unseal
from system.storage.transfer import read_all, write_all

FORMAT: Final = 1
FORMAT_WITH_STATE: Final = 2
"""The format of a root that has a ``state.db``; its marker has the ``root_id`` of both."""
MARKER: Final = "root.json"
LOCK: Final = "runtime.lock"
DATABASE: Final = "state.db"

_UNFINISHED: Final = re.compile(r"runtime\.lock|root\.json\.tmp\.[0-9a-f]{8}")
_SLOT_BYTES: Final = 512


class Root:
    """A locked root; ``epoch`` counts its boots, ``swept`` are temporaries that were removed.

    ``root_id`` is that of its ``state.db``, None if the root has none.
    """

    def __init__(
        self,
        lock: File,
        epoch: int,
        swept: tuple[str, ...],
        root_id: str | None,
    ) -> None:
        self.root_id = root_id
        self.epoch = epoch
        self.swept = swept
        self._lock = lock

    @classmethod
    def open(
        cls,
        files: FileSystem,
        ids: Ids,
        open_database: Callable[[str | None, Sequence[str]], None] | None = None,
    ) -> Root:
        """Lock the root and begin a new boot epoch, durably; an empty directory becomes a root.

        ``open_database`` is called with the lock held, before any file of the root is changed,
        with the ``root_id`` and the names in the directory; its exceptions are raised.

        Raises ``NotARoot``, ``NewerFormat``, ``RootInUse``, ``StorageFull`` or ``OSError``. A
        directory that cannot be opened is refused before any of its files is changed.
        """
        # Nothing is created in a directory that is no root.
        lock = take_lock(files, lambda: _known_root_id(files, files.listdir("")))
        try:
            with RaisingStorageFull(LOCK):
                # Read now: the previous holder of the lock may have made a root, or its database.
                names = files.listdir("")
                root_id = _known_root_id(files, names)
                if open_database is not None:
                    open_database(root_id, names)
                swept = sweep_temporaries(files, "", names=names)
                if MARKER not in names:
                    marker = seal({"format": FORMAT, "made_by": "powercut"}) + b"\n"
                    write_atomic(files, MARKER, marker, ids)
                # A killed process may have created either name without a sync.
                files.sync_dir("")
                epoch = _next_epoch(lock)
        except BaseException:
            lock.close()
            raise
        return cls(lock, epoch, tuple(swept), root_id)

    def adopt(self, files: FileSystem, ids: Ids, root_id: str) -> None:
        """Write durably that the root has a ``state.db``, which is durable itself."""
        members: JsonObject = {
            "format": FORMAT_WITH_STATE, "made_by": "powercut", "root_id": root_id,
        }  # fmt: skip
        write_atomic(files, MARKER, seal(members) + b"\n", ids)
        self.root_id = root_id

    def close(self) -> None:
        """Release the lock of the root."""
        self._lock.close()


def _known_root_id(files: FileSystem, names: Sequence[str]) -> str | None:
    """Return the ``root_id`` of a directory with these names, None if it has none yet.

    Raises ``NotARoot`` or ``NewerFormat`` if it is neither a root nor may become one.
    """
    if MARKER in names:
        return root_id_of(files)
    strange = [name for name in names if not _UNFINISHED.fullmatch(name)]
    if strange:
        raise NotARoot("the directory", f"it holds {strange[0]!r} and no {MARKER}")
    return None


def root_id_of(files: FileSystem) -> str | None:
    """Check the marker; return the id in it, None for a root that has no ``state.db``.

    Raises ``NotARoot`` or ``NewerFormat``.
    """
    try:
        members = unseal(read_whole(files, MARKER).rstrip(b"\n"))
    except BadSeal as bad:
        raise NotARoot(MARKER, f"it cannot be read: {bad}") from bad
    found = members.get("format")
    if not isinstance(found, int):
        raise NotARoot(MARKER, "it names no format")
    if found > FORMAT_WITH_STATE:
        raise NewerFormat(MARKER, f"it has format={found}, known is format={FORMAT_WITH_STATE}")
    if found < FORMAT_WITH_STATE:
        return None
    root_id = members.get("root_id")
    if not isinstance(root_id, str):
        raise NotARoot(MARKER, "it names no root_id")
    return root_id


def take_lock(files: FileSystem, check: Callable[[], object] = lambda: None) -> File:
    """Return the lock of a root, held until it is closed; or raise ``RootInUse``.

    If there is no lock file, ``check`` is called before one is made; its exceptions are raised.
    """
    try:
        lock = files.open(LOCK, OpenMode.WRITE)
    except FileNotFoundError:
        check()
        # Another process may be faster; locking decides.
        with suppress(FileExistsError):
            files.open(LOCK, OpenMode.CREATE).close()
        lock = files.open(LOCK, OpenMode.WRITE)
    try:
        lock.lock()
    except OSError as refused:
        lock.close()
        if isinstance(refused, BlockingIOError):
            raise RootInUse(LOCK) from None
        raise
    return lock


def _next_epoch(lock: File) -> int:
    """Write the next epoch durably into the slot that was not written last; return it."""
    content = read_all(lock)
    epoch, slot = 0, 1
    for number in (0, 1):
        stored = content[number * _SLOT_BYTES : (number + 1) * _SLOT_BYTES]
        if not stored:
            continue
        try:
            found = unseal(stored.split(b"\n", 1)[0]).get("epoch")
        except BadSeal:
            continue
        if isinstance(found, int) and found > epoch:
            epoch, slot = found, number
    entry = seal({"epoch": epoch + 1}) + b"\n"
    write_all(lock, entry.ljust(_SLOT_BYTES), (1 - slot) * _SLOT_BYTES)
    lock.fsync()
    return epoch + 1
