"""The number of survivor sets of a power cut that the lazy engine reports."""

from __future__ import annotations

import os

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.undecided.count import SurvivorSets
from sim.disk.crash.undecided.layer import Layer
from sim.disk.disk import Disk


@pytest.mark.parametrize(
    ("model", "tears", "count"),
    [
        ("scc", 0, 2),
        ("xfs", 0, 3),  # the size waits for the data
        ("ext4", 0, 4),
        ("ext4-writeback", 0, 6),  # the data may be stale as well
        ("posix", 0, 6),
        ("posix", 1, 6 + 2 * 8),  # and torn behind each byte but the last
    ],
)
def test_the_data_and_the_size_of_a_write_survive_in_any_combination_that_a_model_allows(
    model: str, tears: int, count: int
) -> None:
    disk = Disk(model=MODELS[model])
    process = Process(disk)
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.sync()
    process.write(descriptor, b"nine byte")
    layer = Layer((), disk.unsynced().ordering)
    assert SurvivorSets(tears, 1000).of(layer) == count
