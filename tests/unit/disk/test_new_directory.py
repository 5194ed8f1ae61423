"""A barrier on a new directory covers its entries, and under POSIX not the directory itself."""

from __future__ import annotations

import os

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk


def _files_after_power_cut(model: PersistenceModel) -> dict[str, bytes]:
    """Return the files after a power cut that no unsynced operation survives."""
    disk = Disk(model=model)
    process = Process(disk)
    process.mkdir("/d")
    descriptor = process.open("/d/f.tmp", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"content")
    process.fsync(descriptor)
    process.replace("/d/f.tmp", "/d/f")
    process.fsync(process.open("/d", os.O_RDONLY))
    nothing = SurvivorSet.of_mask(0, len(disk.unsynced().micros))
    return disk.power_cut(nothing).files()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "posix"])
def test_a_real_file_system_makes_the_entry_of_a_synced_directory_durable(name: str) -> None:
    assert _files_after_power_cut(MODELS[name]) == {"/d/f": b"content"}


def test_under_posix_a_synced_directory_is_lost_with_all_in_it_without_a_barrier_above() -> None:
    assert _files_after_power_cut(MODELS["posix"]) == {}
