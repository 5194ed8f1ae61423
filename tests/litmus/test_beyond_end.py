"""No disk that a power cut leaves has bytes beyond the end of a file, and both engines agree on it.

Data may be durable without the size that shows it, and a size without the zeros of its
truncation. The recovery that lets the file grow reads zeros there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from sim.choices import SeededChoices
from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import SetSize, WriteBlock
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.undecided import content
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import everything
from sim.disk.crash.undecided.stack import Stack
from sim.disk.disk import Disk
from tests.litmus.observer import random_program, run_program
from tests.litmus.programs import SETUP, Program

PROGRAMS = 60
MOST_STATES = 40
OFFSETS = (0, 4095, 4096, 8192)

_WRITTEN_INTO_A_GAP: Program = [("write", "f", "B1", 8192), ("write_synced", "f", "C1", 4096)]
"""The data in the gap is durable, and no size behind it."""

# Each leaves bytes beyond the end of f on the platter, under some models. A kill separates two
# programs.
EXAMPLES: tuple[tuple[Program, ...], ...] = (
    (_WRITTEN_INTO_A_GAP,),
    ([("truncate", "f", 1), ("create", "g"), ("fsync", "g")],),
    (_WRITTEN_INTO_A_GAP, [("append", "d/f", "B1")]),
    # After the failed barrier no piece is left that would give the file a size.
    ([*_WRITTEN_INTO_A_GAP, ("failed fsync", "f", SyncFailure.EXT4)],),
    ([*_WRITTEN_INTO_A_GAP, ("failed fsync", "f", SyncFailure.EXT4)], [("append", "d/f", "B1")]),
)  # fmt: skip

_MODELS = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


def _disks(programs: tuple[Program, ...], model: PersistenceModel) -> Iterator[Disk]:
    """Yield the disk after each lifetime; a kill ends it."""
    image = SETUP
    for program in programs:
        disk = Disk(image, model)
        run_program(program, Process(disk))
        yield disk
        image = disk.snapshot()


def _random(choices: SeededChoices, most: int) -> Program:
    """Return a random program, of whose writes half are synchronous."""
    return [
        (choices.pick("write", ("write", "write_synced")), *call[1:3], choices.pick("at", OFFSETS))
        if call[0] == "write"
        else call
        for call in random_program(choices, most)
    ]


def _lines(image: Image) -> dict[int, tuple[int, dict[int, bytes], dict[str, int]]]:
    return {
        number: (inode.size, dict(inode.blocks), dict(inode.entries))
        for number, inode in image.platter.items()
        if inode.links
    }


def _check(disk: Disk) -> None:
    space = StateSpace(disk.unsynced())
    for survivors in islice(space.representative(), MOST_STATES):
        image = disk.power_cut(survivors)
        state = Image.of_platter(space.state_of(survivors).inodes, disk.next_inode)
        assert _lines(state) == _lines(image)
        assert all(inode.stored_end <= inode.size for inode in image.platter.values())


@_MODELS
def test_no_image_of_an_example_has_bytes_beyond_the_end_of_a_file(
    model: PersistenceModel,
) -> None:
    for programs in EXAMPLES:
        for disk in _disks(programs, model):
            _check(disk)


@_MODELS
def test_no_image_of_a_random_program_has_bytes_beyond_the_end_of_a_file(
    model: PersistenceModel,
) -> None:
    for seed in range(PROGRAMS):
        choices = SeededChoices(seed)
        for disk in _disks((_random(choices, 12), _random(choices, 6)), model):
            _check(disk)


@_MODELS
def test_a_file_that_grows_after_a_power_cut_has_zeros(model: PersistenceModel) -> None:
    for programs in EXAMPLES:
        disk = list(_disks(programs, model))[-1]
        nothing = StateSpace(disk.unsynced()).largest_within(0)
        process = Process(Disk(disk.power_cut(nothing), model))
        size = process.stat("/f").st_size
        process.truncate("/f", 9000)
        with process.open_file("/f", "rb") as file:
            assert set(file.read()[size:]) == {0}


def test_the_examples_leave_such_bytes_on_the_platter() -> None:
    for programs in EXAMPLES:
        disk = list(_disks(programs, MODELS["xfs"]))[-1]
        number = disk.snapshot().cached[1].entries["f"]
        durable = disk.unsynced().platter[number]
        assert durable.stored_end > durable.size
        survived = disk.power_cut(SurvivorSet()).platter[number]
        assert survived.stored_end <= survived.size


def test_a_layer_drops_bytes_beyond_the_end_that_a_lifetime_has_made_durable() -> None:
    file = SETUP.platter[1].entries["f"]
    ordering = Ordering(MODELS["xfs"])
    written = Layer([WriteBlock(1, file, 4096, b"C", fresh=True, appended=True)], ordering)
    extended = Layer([SetSize(1, file, 9000)], ordering)
    progress = everything(written), everything(extended)
    killed = Stack(SETUP.platter, (written,), progress[:1])
    assert content.data(killed, file, 4096, 4097) == b"C"
    extended_later = Stack(SETUP.platter, (written, extended), progress)
    assert content.data(extended_later, file, 4096, 4097) == b"\0"
