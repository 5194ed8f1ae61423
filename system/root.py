"""The root of a runtime: what says that a directory is one, its lock, and the boot epoch.

``root.json`` is durable before anything else is made, so whatever else a crash leaves, a
directory that has our data has it too. ``runtime.lock`` is never unlinked: a waiter would
hold the old inode and a newcomer the new one (hole I10). It holds the boot epoch, in two
slots that are written in turn, so that one of them is always whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from system.errors import BadSeal, NewerFormat, NotARoot, RootInUse, raising_storage_full
from system.ports import File, FileSystem, Ids, OpenMode
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.codec import seal, unseal
from system.storage.transfer import read_all, write_all

FORMAT: Final = 1
MARKER: Final = "root.json"
LOCK: Final = "runtime.lock"
DATABASE: Final = "state.db"

_UNFINISHED: Final = re.compile(r"runtime\.lock|root\.json\.tmp\.[0-9a-f]{8}")
_SLOT_BYTES: Final = 512


class Root:
    """A locked root; ``epoch`` counts its boots, ``swept`` are temporaries that were removed.

    ``names`` is its listing at the time of locking.
    """

    def __init__(
        self, lock: File, epoch: int, swept: tuple[str, ...], names: Sequence[str]
    ) -> None:
        self.epoch = epoch
        self.swept = swept
        self.names = names
        self._lock = lock

    @classmethod
    def open(cls, files: FileSystem, ids: Ids) -> Root:
        """Lock the root and begin a new boot epoch, durably; an empty directory becomes a root.

        Raises ``NotARoot``, ``NewerFormat``, ``RootInUse``, ``StorageFull`` or ``OSError``;
        what cannot be served is refused before anything of it is touched.
        """
        names = files.listdir("")
        if MARKER not in names:
            strange = [name for name in names if not _UNFINISHED.fullmatch(name)]
            if strange:
                raise NotARoot("the directory", f"it holds {strange[0]!r} and no {MARKER}")
        else:
            check_served(names)
            _check_marker(files)
        lock = _locked(files, names)
        try:
            with raising_storage_full(LOCK):
                # Listed again: the holder of the lock until now may have created and removed files.
                locked_names = files.listdir("")
                swept = sweep_temporaries(files, "", names=locked_names)
                if MARKER not in names:
                    marker = seal({"format": FORMAT, "made_by": "powercut"}) + b"\n"
                    write_atomic(files, MARKER, marker, ids)
                # A killed process may have made either name without its barrier.
                files.sync_dir("")
                epoch = _next_epoch(lock)
        except BaseException:
            lock.close()
            raise
        return cls(lock, epoch, tuple(swept), locked_names)

    def close(self) -> None:
        """Let another runtime have the root."""
        self._lock.close()


def check_served(names: Sequence[str]) -> None:
    """Raise ``NewerFormat`` for a root of these names whose ``state.db`` schedules work."""
    if DATABASE in names:
        raise NewerFormat(DATABASE, "it schedules work that this version cannot do")


def _check_marker(files: FileSystem) -> None:
    try:
        members = unseal(read_whole(files, MARKER).rstrip(b"\n"))
    except BadSeal as bad:
        raise NotARoot(MARKER, f"it cannot be read: {bad}") from bad
    found = members.get("format")
    if not isinstance(found, int):
        raise NotARoot(MARKER, "it names no format")
    if found > FORMAT:
        raise NewerFormat(MARKER, f"it has format={found}, known is format={FORMAT}")


def _locked(files: FileSystem, names: Sequence[str]) -> File:
    if LOCK not in names:
        # Another process may be faster; the lock below decides.
        with suppress(FileExistsError):
            files.open(LOCK, OpenMode.CREATE).close()
    lock = files.open(LOCK, OpenMode.WRITE)
    try:
        lock.lock()
    except BlockingIOError:
        lock.close()
        raise RootInUse(LOCK) from None
    return lock


def _next_epoch(lock: File) -> int:
    """Count one boot more, durably, in the slot that is not the last one; return the epoch."""
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
    # The file may have its size in the page cache only, because the barrier of the boot that
    # extended it has failed; the kernel then writes the size only if it changes again.
    lock.truncate(2 * _SLOT_BYTES + 1)
    lock.truncate(2 * _SLOT_BYTES)
    lock.fsync()
    return epoch + 1
