"""Large writes: where a journal has too many unsynced sectors, some writes have fewer pieces."""

from __future__ import annotations

from typing import Final

from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.unsynced_sectors import UnsyncedSectors

CUT_SECTORS: Final = 48
"""Unsynced sectors that are lost one by one where there are too many."""


def fitting(model: PersistenceModel, journal: Journal, most_sectors: int) -> PersistenceModel:
    """Return the model, with fewer pieces if ``journal`` has too many unsynced sectors.

    ``most_sectors`` is the largest number of sectors of 512 bytes that may be unsynced at one
    moment.
    """
    unsynced = UnsyncedSectors()
    for operation in journal:
        unsynced.advance(operation)
        if unsynced.in_all > most_sectors:
            return model.with_most_sectors(CUT_SECTORS)
    return model
