"""The patterns of survivor sets lose the kinds of pieces that their names say."""

from __future__ import annotations

import os

import pytest

from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.choose_survivors import Pattern, choose_survivors
from sim.disk.crash.persistence import BTRFS, POSIX, PersistenceModel
from sim.disk.disk import Disk


class _With(PlainChoices):
    """Chooses one pattern, and the simplest answer to everything else."""

    def __init__(self, pattern: Pattern) -> None:
        self._pattern = pattern

    def integer(self, label: str, low: int, high: int) -> int:
        return int(self._pattern) if label == "survivors" else super().integer(label, low, high)


@pytest.mark.parametrize("pattern", [Pattern.WITHOUT_NAMES, Pattern.WITHOUT_EITHER])
@pytest.mark.parametrize("model", [BTRFS, POSIX], ids=lambda model: model.name)
def test_without_changes_of_names_a_file_keeps_the_name_it_had(
    model: PersistenceModel, pattern: Pattern
) -> None:
    """After a rename, an unlink also removes the name that the file has on the platter."""
    disk = Disk(model=model)
    process = Process(disk)
    process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.sync()
    process.rename("/f", "/g")
    process.unlink("/g")
    survivors = choose_survivors(_With(pattern), disk.unsynced().ordering)
    assert disk.power_cut(survivors).files() == {"/f": b""}
