"""Large writes: where a journal has too many unsynced sectors, whole calls are lost."""

from __future__ import annotations

from sim.disk.cache.inode import SECTOR_BYTES
from sim.disk.cache.operation import Sync, Write
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel


def fitting(model: PersistenceModel, journal: Journal, most_sectors: int) -> PersistenceModel:
    """Return the model, with whole calls if ``journal`` has too many unsynced sectors.

    ``most_sectors`` is the largest number of sectors of 512 bytes that may be unsynced at one
    moment. A barrier counts for the content of its file, ``sync(2)`` for all files.
    """
    unsynced: dict[int, int] = {}
    for operation in journal:
        if isinstance(operation, Write):
            sectors = -(-len(operation.data) // SECTOR_BYTES)
            unsynced[operation.inode] = unsynced.get(operation.inode, 0) + sectors
            if sum(unsynced.values()) > most_sectors:
                return model.with_whole_calls()
        elif isinstance(operation, Sync):
            if operation.inode:
                unsynced.pop(operation.inode, None)
            else:
                unsynced.clear()
    return model
