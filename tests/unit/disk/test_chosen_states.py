"""The states that are chosen where there are too many: each is what a power cut would leave."""

from __future__ import annotations

import os

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk


def _busy(model: str) -> Disk:
    disk = Disk(Image.empty(), MODELS[model])
    process = Process(disk)
    process.mkdir("/d")
    log = process.open("/log", os.O_RDWR | os.O_CREAT)
    process.pwrite(log, b"first" * 200, 0)
    process.pwrite(log, b"second" * 200, 900)
    other = process.open("/d/other", os.O_WRONLY | os.O_CREAT)
    process.pwrite(other, b"other", 0)
    process.rename("/d/other", "/d/name")
    process.ftruncate(log, 700)
    return disk


@pytest.mark.parametrize("model", MODELS)
def test_a_chosen_state_is_what_a_power_cut_leaves(model: str) -> None:
    disk = _busy(model)
    space = StateSpace(disk.unsynced())
    chosen = list(space.representative())
    # Whatever was chosen before it.
    for survivors in (*chosen, *reversed(chosen)):
        state = space.state_of(survivors)
        assert state.survivors == survivors
        left = Image.of_platter(state.inodes, disk.next_inode)
        assert left.digest() == disk.power_cut(survivors).digest()
        alone = StateSpace(disk.unsynced()).state_of(survivors)
        assert (state.key, state.survivors) == (alone.key, alone.survivors)


def test_a_torn_write_is_hurt_as_a_lost_one_is() -> None:
    assert SurvivorSet().first_hurt == 0
    assert SurvivorSet(lost=(1, 3), torn=((2, 5),)).first_hurt == 1
    assert SurvivorSet(lost=(3,), torn=((2, 5),)).first_hurt == 2
