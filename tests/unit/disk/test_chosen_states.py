"""The representative states of a large space are states that a power cut would leave."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import reduce
from itertools import islice
from operator import or_

import pytest

from sim.disk.cache.operation import Sync, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import WriteBlock
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from sim.errors import HarnessError
from tests.litmus.observer import FailedSyncs


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
def test_a_chosen_state_equals_a_power_cut_with_its_survivors(model: str) -> None:
    disk = _busy(model)
    space = StateSpace(disk.unsynced())
    chosen = list(space.representative())
    # In both orders: a state must not depend on those built before it.
    for survivors in (*chosen, *reversed(chosen)):
        state = space.state_of(survivors)
        assert state.survivors == survivors
        left = Image.of_platter(state.inodes, disk.next_inode)
        assert left.digest() == disk.power_cut(survivors).digest()
        alone = StateSpace(disk.unsynced()).state_of(survivors)
        assert (state.key, state.survivors) == (alone.key, alone.survivors)


def _synced_and_busy(model: str) -> Disk:
    """Write, sync, and fail to sync, each time before further changes."""
    disk = _busy(model)
    process = Process(disk)
    log = process.open("/log", os.O_WRONLY)
    process.fsync(log)
    process.rename("/d/name", "/d/again")
    process.sync()
    process.pwrite(log, b"third" * 200, 0)
    process.fsync(log)
    process.pwrite(log, b"fourth" * 200, 2000)
    disk.interposer = FailedSyncs(SyncFailure.XFS)
    with suppress(OSError):
        process.fsync(log)
    disk.interposer = None
    process.mkdir("/e")
    return disk


@pytest.mark.parametrize("model", MODELS)
def test_a_later_space_shares_the_work_of_an_earlier_one(model: str) -> None:
    journal = _synced_and_busy(model).journal
    unsynced, space, saved = Unsynced(MODELS[model], journal.image.platter), None, 0
    for number, operation in enumerate(journal, 1):
        unsynced.advance(operation, number)
        if isinstance(journal[min(number, len(journal) - 1)], Sync):
            continue
        alone, space = StateSpace(unsynced), StateSpace(unsynced, space)
        for survivors in alone.representative():
            assert space.state_of(survivors).key == alone.state_of(survivors).key
        saved += space.steps < alone.steps
    assert saved


@pytest.mark.parametrize("model", MODELS)
def test_every_state_equals_a_power_cut_with_its_survivors(model: str) -> None:
    disk = _busy(model)
    for state in islice(StateSpace(disk.unsynced()).all(), 300):
        left = Image.of_platter(state.inodes, disk.next_inode)
        assert left.digest() == disk.power_cut(state.survivors).digest()


@pytest.mark.parametrize("model", MODELS)
def test_bytes_behind_the_end_of_a_file_do_not_come_back(model: str) -> None:
    """The next boot makes a file longer that a truncation has left shorter."""
    disk = Disk(Image.empty(), MODELS[model])
    process = Process(disk)
    descriptor = process.open("/f", os.O_RDWR | os.O_CREAT)
    process.write(descriptor, b"a" * 100)
    process.sync()
    process.ftruncate(descriptor, 10)
    space = StateSpace(disk.unsynced())
    for state in space.all(0, 1000):
        chosen = Image.of_platter(space.state_of(state.survivors).inodes, disk.next_inode)
        for image in (chosen, disk.power_cut(state.survivors)):
            booted = Process(Disk(image))
            booted.truncate("/f", 100)
            with booted.open_file("/f", "rb") as file:
                assert file.read() == image.files()["/f"].ljust(100, b"\0")


def test_a_write_is_torn_at_its_ends_and_in_between() -> None:
    disk = Disk(Image.empty(), MODELS["posix"])
    process = Process(disk)
    process.write(process.open("/f", os.O_WRONLY | os.O_CREAT), bytes(range(16)))
    chosen = StateSpace(disk.unsynced()).representative()
    assert {kept for each in chosen for _, kept in each.torn} == {1, 5, 8, 15}


def test_each_lost_write_is_stale_in_a_chosen_state() -> None:
    disk = Disk(Image.empty(), MODELS["ext4-writeback"])
    process = Process(disk)
    for name in ("/f", "/g"):
        process.write(process.open(name, os.O_WRONLY | os.O_CREAT), b"data")
    space = StateSpace(disk.unsynced())
    writes = [index for index, each in enumerate(space.micros) if isinstance(each, WriteBlock)]
    stale = [each for each in space.representative() if each.stale]
    assert [each.stale for each in stale] == [(index,) for index in writes]
    assert all(each.lost == each.stale for each in stale)


def test_many_pieces_are_lost_by_whole_calls() -> None:
    disk = Disk(Image.empty(), MODELS["posix"])
    process = Process(disk)
    log = process.open("/log", os.O_RDWR | os.O_CREAT)
    for number in range(10):
        process.pwrite(log, bytes([number + 1]) * 4096, number * 4096)
    space = StateSpace(disk.unsynced())
    assert len(space.parts) == disk.operations
    assert reduce(or_, space.parts) == (1 << len(space.micros)) - 1
    alone = space.state_of(
        next(each for each in space.representative() if _survivors(space, each) == {0, 5})
    )
    files = Image.of_platter(alone.inodes, disk.next_inode).files()
    assert files == {"/log": bytes(4 * 4096) + b"\5" * 4096}


def test_a_call_that_survives_alone_brings_the_calls_that_it_needs() -> None:
    disk = Disk(Image.empty(), MODELS["posix"])
    process = Process(disk)
    log = process.open("/log", os.O_RDWR | os.O_CREAT)
    for number in range(8):
        process.pwrite(log, b"x" * 4096, number * 4096)
    created = disk.operations
    process.open("/file", os.O_RDWR | os.O_CREAT)
    process.pwrite(log, b"x", 0)
    linked = disk.operations
    process.link("/file", "/name")
    space = StateSpace(disk.unsynced())
    assert {created, linked} in [_survivors(space, each) for each in space.representative()]


def _survivors(space: StateSpace, survivors: SurvivorSet) -> set[int]:
    """Return the calls, from 0, whose pieces all survive; pieces of no other may."""
    lost = set(survivors.lost)
    calls = {number for number, part in enumerate(space.parts) if not lost & _indices(part)}
    kept = set(range(len(space.micros))) - lost
    return calls if set().union(*(_indices(space.parts[call]) for call in calls)) == kept else set()


def _indices(part: int) -> set[int]:
    return {index for index in range(part.bit_length()) if part >> index & 1}


@pytest.mark.parametrize(
    ("survivors", "reason"),
    [
        (SurvivorSet(lost=(4,)), "has an index outside the 4 unsynced pieces"),
        (SurvivorSet(lost=(-1,)), "has an index outside the 4 unsynced pieces"),
        (SurvivorSet(torn=((4, 1),)), "has an index outside the 4 unsynced pieces"),
        (SurvivorSet(lost=(2,), stale=(4,)), "has an index outside the 4 unsynced pieces"),
        (SurvivorSet(lost=(0,)), "does not allow the loss of"),
        (SurvivorSet(torn=((2, 4),)), "cannot tear .* after 4 bytes"),
        (SurvivorSet(torn=((2, 0),)), "cannot tear .* after 0 bytes"),
        (SurvivorSet(torn=((3, 1),)), "cannot tear .* after 1 bytes"),
        (SurvivorSet(lost=(2,), torn=((2, 1),)), "cannot tear .* after 1 bytes"),
        (SurvivorSet(stale=(2,)), "has no stale bytes for"),
    ],
)
def test_a_survivor_set_that_the_model_forbids_is_refused(
    survivors: SurvivorSet, reason: str
) -> None:
    """The pieces are the inode, its name, the data and the size."""
    disk = Disk(Image.empty(), MODELS["posix"])
    process = Process(disk)
    process.write(process.open("/f", os.O_WRONLY | os.O_CREAT), b"data")
    assert len(disk.unsynced().micros) == 4
    with pytest.raises(HarnessError, match=reason):
        disk.power_cut(survivors)


def test_the_first_loss_may_be_a_torn_write() -> None:
    assert SurvivorSet().first_loss == 0
    assert SurvivorSet(lost=(1, 3), torn=((2, 5),)).first_loss == 1
    assert SurvivorSet(lost=(3,), torn=((2, 5),)).first_loss == 2


@pytest.mark.parametrize("model", ["ext4-ordered", "ext4-writeback", "xfs", "btrfs", "posix"])
def test_a_file_without_a_name_loses_no_data(model: str) -> None:
    """Its loss would be named beside the one that does harm, and an fsync would prevent it."""
    disk = Disk(Image.empty(), MODELS[model])
    process = Process(disk)
    process.write(process.open("/gone", os.O_WRONLY | os.O_CREAT), b"gone")
    gone = process.stat("/gone").st_ino
    process.unlink("/gone")
    process.write(process.open("/kept", os.O_WRONLY | os.O_CREAT), b"kept")
    micros = disk.unsynced().micros
    data = {index for index, each in enumerate(micros) if each.number == gone}
    data &= {index for index, each in enumerate(micros) if isinstance(each, WriteBlock)}
    states = [
        state
        for state in StateSpace(disk.unsynced()).all()
        if gone in state.inodes and not state.inodes[gone].links
    ]
    assert data
    assert states
    assert not any(data.intersection(state.survivors.lost) for state in states)
