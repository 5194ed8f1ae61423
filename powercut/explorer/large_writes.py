"""Large writes: where a journal has too many unsynced sectors, some calls are lost as a whole."""

from __future__ import annotations

from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.unsynced_sectors import UnsyncedSectors


def fitting(model: PersistenceModel, journal: Journal, most_sectors: int) -> PersistenceModel:
    """Return the model, with whole calls if ``journal`` has too many unsynced sectors.

    ``most_sectors`` is the largest number of sectors of 512 bytes that may be unsynced at one
    moment. If there are more, so many of them can be lost one by one.
    """
    unsynced = UnsyncedSectors()
    for operation in journal:
        unsynced.advance(operation)
        if unsynced.in_all > most_sectors:
            return model.with_most_sectors(most_sectors)
    return model
