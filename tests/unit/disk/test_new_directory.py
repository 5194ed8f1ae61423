"""What a barrier on a new directory covers: its entries, and under POSIX not its own."""

from __future__ import annotations

import os

import pytest

from sim.disk.disk import Disk
from sim.disk.handle import Handle
from sim.disk.persistence import MODELS, PersistenceModel
from sim.disk.survivors import SurvivorSet


def _files_after_power_cut(model: PersistenceModel) -> dict[str, bytes]:
    """Return what is left when nothing pending survives a file put into a new directory."""
    disk = Disk(model=model)
    handle = Handle(disk)
    handle.mkdir("/d")
    descriptor = handle.open("/d/f.tmp", os.O_CREAT | os.O_WRONLY)
    handle.write(descriptor, b"content")
    handle.fsync(descriptor)
    handle.replace("/d/f.tmp", "/d/f")
    handle.fsync(handle.open("/d", os.O_RDONLY))
    nothing = SurvivorSet.of_mask(0, len(disk.pending().micros))
    return disk.power_cut(nothing).files()


@pytest.mark.parametrize("name", [name for name in MODELS if name != "posix"])
def test_a_real_file_system_makes_the_entry_of_a_synced_directory_durable(name: str) -> None:
    assert _files_after_power_cut(MODELS[name]) == {"/d/f": b"content"}


def test_under_posix_a_synced_directory_is_lost_with_all_in_it_without_a_barrier_above() -> None:
    assert _files_after_power_cut(MODELS["posix"]) == {}
