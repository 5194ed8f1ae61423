"""The states that are chosen where there are too many: each is what a power cut would leave."""

from __future__ import annotations

import os

import pytest

from sim.disk.crash_image import Image
from sim.disk.disk import Disk
from sim.disk.handle import Handle
from sim.disk.persistence import MODELS
from sim.disk.states import StateSpace
from sim.disk.survivors import SurvivorSet


def _busy(model: str) -> Disk:
    disk = Disk(Image.empty(), MODELS[model])
    handle = Handle(disk)
    handle.mkdir("/d")
    log = handle.open("/log", os.O_RDWR | os.O_CREAT)
    handle.pwrite(log, b"first" * 200, 0)
    handle.pwrite(log, b"second" * 200, 900)
    other = handle.open("/d/other", os.O_WRONLY | os.O_CREAT)
    handle.pwrite(other, b"other", 0)
    handle.rename("/d/other", "/d/name")
    handle.ftruncate(log, 700)
    return disk


@pytest.mark.parametrize("model", MODELS)
def test_a_chosen_state_is_what_a_power_cut_leaves(model: str) -> None:
    disk = _busy(model)
    space = StateSpace(disk.pending())
    chosen = list(space.telling())
    # Whatever was chosen before it.
    for survivors in (*chosen, *reversed(chosen)):
        state = space.one(survivors)
        assert state.survivors == survivors
        left = Image.of_platter(state.inodes, disk.next_inode)
        assert left.digest() == disk.power_cut(survivors).digest()
        alone = StateSpace(disk.pending()).one(survivors)
        assert (state.key, state.survivors) == (alone.key, alone.survivors)


def test_a_torn_write_is_hurt_as_a_lost_one_is() -> None:
    assert SurvivorSet().first_hurt == 0
    assert SurvivorSet(lost=(1, 3), torn=((2, 5),)).first_hurt == 1
    assert SurvivorSet(lost=(3,), torn=((2, 5),)).first_hurt == 2
