"""The patterns of survivor sets lose the pieces that their names say."""

from __future__ import annotations

import os

import pytest

from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.choose_survivors import Pattern, Tear, choose_survivors
from sim.disk.crash.persistence import BTRFS, EXT4_WRITEBACK, POSIX, PersistenceModel
from sim.disk.disk import Disk


class _With(PlainChoices):
    """Gives these answers, and the simplest one to every other question."""

    def __init__(self, answers: dict[str, int]) -> None:
        self._answers = answers

    def integer(self, label: str, low: int, high: int) -> int:
        return self._answers.get(label, super().integer(label, low, high))


def _left(disk: Disk, **answers: int) -> dict[str, bytes]:
    """Return the files after a power cut; an underscore in the name of a question is a space."""
    choices = _With({label.replace("_", " "): answer for label, answer in answers.items()})
    return disk.power_cut(choose_survivors(choices, disk.unsynced().ordering)).files()


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
    assert _left(disk, survivors=pattern) == {"/f": b""}


def _three_unlinked() -> Disk:
    """Return a disk on which the files a, b and c are durable, and removed in this order."""
    disk = Disk(model=POSIX)
    process = Process(disk)
    for name in "abc":
        process.open(f"/{name}", os.O_CREAT | os.O_WRONLY)
    process.sync()
    for name in "abc":
        process.unlink(f"/{name}")
    return disk


@pytest.mark.parametrize(
    ("pattern", "place", "left"),
    [
        (Pattern.ALL, 0, ""),
        (Pattern.NONE, 0, "abc"),
        (Pattern.PREFIX, 0, "c"),
        (Pattern.PREFIX, 1, "bc"),
        (Pattern.PREFIX, 2, "abc"),
        (Pattern.PREFIX, 3, "c"),
        (Pattern.WITHOUT_NAMES, 0, "abc"),
        (Pattern.WITHOUT_DATA, 0, ""),
        (Pattern.WITHOUT_ONE, 0, "c"),
        (Pattern.WITHOUT_ONE, 2, "a"),
        (Pattern.ONLY_ONE, 0, "ab"),
        (Pattern.ONLY_ONE, 2, "bc"),
    ],
)
def test_a_pattern_counts_places_from_the_newest_piece(
    pattern: Pattern, place: int, left: str
) -> None:
    found = _left(_three_unlinked(), survivors=pattern, place=place)
    assert sorted(found) == [f"/{name}" for name in left]


def test_random_survivors_are_any_set_and_depend_on_the_seed_only() -> None:
    disk = _three_unlinked()
    found = [tuple(_left(disk, survivors=Pattern.RANDOM, seed=seed)) for seed in range(256)]
    assert len(set(found)) == 2**3
    again = [tuple(_left(disk, survivors=Pattern.RANDOM, seed=seed)) for seed in range(256)]
    assert found == again


def test_a_lost_piece_takes_with_it_those_that_need_it() -> None:
    """A name needs the creation of its file."""
    disk = Disk(model=POSIX)
    process = Process(disk)
    process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.open("/g", os.O_CREAT | os.O_WRONLY)
    oldest = len(disk.unsynced().ordering.micros) - 1
    assert _left(disk, survivors=Pattern.WITHOUT_ONE, place=oldest) == {"/g": b""}
    assert _left(disk, survivors=Pattern.ONLY_ONE, place=0) == {"/g": b""}


@pytest.mark.parametrize(
    ("tear", "place", "new_bytes"),
    [
        (Tear.WHOLE, 0, 600),
        (Tear.ALL_BUT_ONE_BYTE, 0, 599),
        (Tear.ONE_BYTE, 0, 513),
        (Tear.ANYWHERE, 0, 513),
        (Tear.ANYWHERE, 7, 520),
        (Tear.ANYWHERE, 87, 513),
    ],
)
def test_the_last_sector_is_torn_after_a_byte(tear: Tear, place: int, new_bytes: int) -> None:
    disk = Disk(model=POSIX)
    process = Process(disk)
    file = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.write(file, b"o" * 600)
    process.sync()
    process.pwrite(file, b"n" * 600, 0)
    content = _left(disk, tear=tear, torn_after=place)["/f"]
    assert content == b"n" * new_bytes + b"o" * (600 - new_bytes)


@pytest.mark.parametrize("stale", [0, 1, 2])
def test_in_one_choice_of_three_lost_data_is_stale(stale: int) -> None:
    disk = Disk(model=EXT4_WRITEBACK)
    process = Process(disk)
    file = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.sync()
    process.write(file, b"new")
    content = _left(disk, survivors=Pattern.WITHOUT_DATA, stale=stale)["/f"]
    assert (content == bytes(3)) == (stale < 2)
    assert content != b"new"
