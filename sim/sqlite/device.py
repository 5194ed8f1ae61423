"""The device characteristics that SQLite sees: the guarantees of a persistence model.

SQLite omits work for every flag of ``xDeviceCharacteristics``, so a flag that the model does
not justify would be our bug and look like SQLite's. From sqlite.org
``c3ref/c_iocap_atomic.html`` and ``psow.html``:

===================== ================================= ===================================
flag                  SQLite relies on                  claimed when
===================== ================================= ===================================
POWERSAFE_OVERWRITE   no byte outside of a write's      always: the pieces of a write hold
                      range changes, though those       its own bytes only, in every model
                      inside may be anything            (a torn sector of ``posix`` keeps
                                                        the old bytes behind the tear)
SUBPAGE_READ          reads need no alignment           always; not about power
SEQUENTIAL            writes to any file become         ``sequential``
                      durable in the order of xWrite
SAFE_APPEND           an append's data is there         ``sequential``, see below
                      before the size shows it
ATOMIC512 … ATOMIC4K  an aligned block of that size     ``sequential``: under the other
                      is written entirely or not at all    models a new block may read as
                                                        zeros, because a size waits at most
                                                        for the data of the last block
BATCH_ATOMIC          several writes in one commit      never: no model has transactions
IMMUTABLE,            no process changes or deletes it  never
UNDELETABLE_WHEN_OPEN
===================== ================================= ===================================

which gives, beside POWERSAFE_OVERWRITE and SUBPAGE_READ:

================================ ============================================ ===========
model                            flags                                        sector size
================================ ============================================ ===========
``scc``                          SEQUENTIAL SAFE_APPEND ATOMIC512 … ATOMIC4K  512
``ext4-journal``                 the same                                     4096
``btrfs``                        none                                         4096
the others                       none                                         512
================================ ============================================ ===========

A file system that writes data before the size satisfies the documented meaning of
SAFE_APPEND, but SQLite relies on more. With the flag it writes a rollback journal with one
sync and no count of records, and relies on a checksum that samples every 200th byte of a
page; and it does so also where it overwrites the last journal instead of appending, in
PERSIST and in exclusive locking mode. There a lost sector leaves the old page under the new
checksum, and the rollback restores an older page: an acknowledged commit is lost. Only
ordered overwrites make that safe. (Real SQLite claims SAFE_APPEND nowhere but on QNX.)

SQLite's own unix VFS claims POWERSAFE_OVERWRITE and SUBPAGE_READ on every file system and
nothing else; ``psow=0`` in a URI removes the first, here as well.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import apsw

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.disk.crash.persistence import PersistenceModel

_ATOMIC: Final = {
    512: apsw.SQLITE_IOCAP_ATOMIC512,
    1024: apsw.SQLITE_IOCAP_ATOMIC1K,
    2048: apsw.SQLITE_IOCAP_ATOMIC2K,
    4096: apsw.SQLITE_IOCAP_ATOMIC4K,
}


class Device(NamedTuple):
    """``xSectorSize``, the smallest write that is no read-modify-write, and the flags of
    ``xDeviceCharacteristics``.
    """

    sector_bytes: int
    characteristics: int

    @property
    def has_powersafe_overwrite(self) -> bool:
        return bool(self.characteristics & apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE)

    def with_powersafe_overwrite(self, *, claimed: bool) -> Device:
        """Return this device, with that flag claimed or not."""
        flag = apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE
        flags = self.characteristics | flag if claimed else self.characteristics & ~flag
        return self._replace(characteristics=flags)


@cache
def device_of(model: PersistenceModel) -> Device:
    """Return the device whose flags are exactly the guarantees of ``model``."""
    flags = apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE | apsw.SQLITE_IOCAP_SUBPAGE_READ
    if model.sequential:
        flags |= apsw.SQLITE_IOCAP_SEQUENTIAL | apsw.SQLITE_IOCAP_SAFE_APPEND
        atomic_bytes = model.unit_bytes or BLOCK_BYTES
        for size, flag in _ATOMIC.items():
            if size <= atomic_bytes:
                flags |= flag
    # The unit of a model with whole calls has no bound; that of a device is a block at most.
    return Device(min(model.unit_bytes or SECTOR_BYTES, BLOCK_BYTES), flags)
