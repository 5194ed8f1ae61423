"""A stronger model allows no state that a weaker model forbids, after any random program."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import assume, given

from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import (
    BTRFS,
    EXT4_ORDERED,
    EXT4_WRITEBACK,
    POSIX,
    STRONGER_THAN,
    XFS,
    PersistenceModel,
)
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.unsynced import Unsynced
from tests.litmus.body import Calls, outcomes
from tests.litmus.programs import PROGRAMS, SETUP, Program, disk_after

MOST_STATES = 300
_MOST_IN_ALL = 20_000
"""The states of a program that is checked. A few torn writes together have billions."""
_REDUCED = (EXT4_ORDERED, EXT4_WRITEBACK, XFS, BTRFS, POSIX)
_PAIRS = (
    *STRONGER_THAN,
    *(
        (replace(model.with_whole_calls(), name=f"{model.name} in whole calls"), model)
        for model in _REDUCED
    ),
    *(
        (replace(model.with_most_sectors(most), name=f"{model.name} with {most} sectors"), model)
        for model in _REDUCED
        for most in (3, 20)
    ),
)


def _journal(program: Program) -> Journal:
    return disk_after(program).journal


def _keys(model: PersistenceModel, journal: Journal) -> list[set[int]]:
    """Return the keys of all states after each operation; a program with too many is skipped."""
    unsynced = Unsynced(model, SETUP.platter)
    found, left = [], _MOST_IN_ALL
    for number, operation in enumerate(journal, 1):
        unsynced.advance(operation, number)
        keys = [state.key for state in islice(StateSpace(unsynced).all(), left + 1)]
        left -= len(keys)
        assume(left >= 0)
        found.append(set(keys))
    return found


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    _PAIRS,
    ids=[f"{stronger.name} < {weaker.name}" for stronger, weaker in _PAIRS],
)
@given(program=PROGRAMS)
def test_every_state_of_the_stronger_model_is_a_state_of_the_weaker(
    stronger: PersistenceModel, weaker: PersistenceModel, program: Program
) -> None:
    journal = _journal(program)
    both = zip(_keys(stronger, journal), _keys(weaker, journal), journal, strict=True)
    for few, many, operation in both:
        assert few <= many, f"after {operation}"


@given(program=PROGRAMS)
def test_keys_are_equal_exactly_for_equal_trees_and_inode_numbers(program: Program) -> None:
    unsynced = Unsynced(POSIX, SETUP.platter)
    for number, operation in enumerate(_journal(program), 1):
        unsynced.advance(operation, number)
    visible: dict[int, tuple[str, tuple[int, ...]]] = {}
    for state in islice(StateSpace(unsynced).all(), MOST_STATES):
        image = Image.of_platter(state.inodes, 99)
        observe = (image.digest(), tuple(inode.number for _, inode in image.tree()))
        assert visible.setdefault(state.key, observe) == observe
    assert len(set(visible.values())) == len(visible)


def test_a_barrier_on_the_old_directory_waits_for_the_new_name_of_a_torn_rename_too() -> None:
    def setup(calls: Calls) -> None:
        calls.mkdir("d")
        calls.write("d/f", "A1")

    def body(calls: Calls) -> None:
        calls.rename("d/f", "g")
        calls.fsync("d")

    torn = POSIX.with_torn_rename()
    assert outcomes(POSIX, setup, body) <= outcomes(torn, setup, body)


def test_only_btrfs_gives_a_name_back_when_the_directory_that_was_left_is_synced_twice() -> None:
    """The exception that docs/disk.md states; no kernel was seen to leave this outcome."""

    def setup(calls: Calls) -> None:
        calls.mkdir("d")
        calls.write("d/f", "A1")
        calls.write("h", "B1")

    def body(calls: Calls) -> None:
        calls.rename("h", "d/f")
        calls.fsync()
        calls.rename("d/f", "h")
        calls.fsync()

    more = outcomes(BTRFS, setup, body) - outcomes(POSIX, setup, body)
    assert more == {"d/f=A1 h=B1"}


@pytest.mark.parametrize("model", [EXT4_ORDERED, POSIX], ids=lambda model: model.name)
def test_a_barrier_on_a_page_covers_the_size_of_a_whole_call_in_the_next(
    model: PersistenceModel,
) -> None:
    def setup(calls: Calls) -> None:
        calls.write("f", "A1")

    def body(calls: Calls) -> None:
        calls.write("f", "B2", at=4095)
        calls.write_synced("f", "C1")

    assert outcomes(model.with_whole_calls(), setup, body) <= outcomes(model, setup, body)
