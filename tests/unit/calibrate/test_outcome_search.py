"""The search for a power cut that leaves an outcome of several files."""

from __future__ import annotations

from typing import Final

import pytest

from powercut.calibrate.judgement import JudgedOutcome, Simulated
from powercut.calibrate.outcome_search import OutcomeSearch
from powercut.calibrate.program import Outcome
from powercut.calibrate.random_program import random_program
from sim.choices import SeededChoices
from sim.disk.crash.persistence import BTRFS, EXT4, EXT4_WRITEBACK, XFS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet, closed
from sim.disk.crash.unsynced import Unsynced

CALLS: Final = (
    ("trunc", "f", 5000),
    ("trunc", "g", 0),
    ("write", "f", 8192, 100, "B"),
    ("trunc", "f", 5000),
)
"""On ext4 the last two sizes of f need that of g, and the first does not."""


def _allows(first: str, second: str, outcome: Outcome) -> bool:
    setup = [("write", first, 0, 100, "a"), ("write", second, 0, 100, "a")]
    return Simulated(setup, CALLS).allows(EXT4, JudgedOutcome(len(CALLS), outcome))


@pytest.mark.parametrize(("first", "second"), [("f", "g"), ("g", "f")])
def test_a_later_file_refutes_the_first_decision_on_another(first: str, second: str) -> None:
    assert _allows(first, second, {"f": "a100,04900", "g": "a100"})
    assert _allows(first, second, {"f": "a100,04900", "g": "empty"})


@pytest.mark.parametrize(("first", "second"), [("f", "g"), ("g", "f")])
def test_the_decisions_on_two_files_fit_together(first: str, second: str) -> None:
    assert _allows(first, second, {"f": "a100,08092,B100", "g": "empty"})
    assert not _allows(first, second, {"f": "a100,08092,B100", "g": "a100"})


ATTRIBUTES: Final = (
    ("mkdir", "d"),
    ("chmod", "d", 0o1700),
    ("chmod", "f", 0o1755),
    ("fdatasync", "f"),
    ("fsync", "g"),
)


@pytest.mark.parametrize(
    ("model", "outcome", "allowed"),
    [
        (EXT4, {"d": "dir 1700", "f": "a100 1755", "g": "a100"}, True),
        (EXT4, {"d": "dir 1700", "f": "a100", "g": "a100"}, True),
        (EXT4, {"d": "dir", "f": "a100 1755", "g": "a100"}, False),
        (EXT4, {"d": "dir 1700", "f": "a100 1700", "g": "a100"}, False),
        (BTRFS, {"f": "a100 1755", "g": "a100"}, True),
        (BTRFS, {"d": "dir", "f": "a100 1755", "g": "a100"}, True),
    ],
)  # fmt: skip
def test_permission_bits_that_chmod_has_set_belong_to_the_outcome(
    model: PersistenceModel, outcome: Outcome, allowed: bool
) -> None:
    setup = [("write", "f", 0, 100, "a"), ("write", "g", 0, 100, "a")]
    program = Simulated(setup, ATTRIBUTES)
    assert program.allows(model, JudgedOutcome(len(ATTRIBUTES), outcome)) == allowed


@pytest.mark.parametrize("model", [EXT4, EXT4_WRITEBACK, XFS, BTRFS], ids=lambda model: model.name)
@pytest.mark.parametrize("seed", range(290, 300))
def test_the_survivors_found_leave_the_outcome_that_some_survivors_have_left(
    seed: int, model: PersistenceModel
) -> None:
    random = random_program(seed)
    program, choices = Simulated(random.setup, random.calls), SeededChoices(seed)
    unsynced = Unsynced(model, program.image.platter)
    for number, operation in enumerate(program.journal, 1):
        unsynced.advance(operation, number)
    search, count = OutcomeSearch(unsynced, program.next_inode), len(unsynced.micros)
    for _ in range(6):
        mask = closed(unsynced.ordering, choices.integer("mask", 0, (1 << count) - 1))
        outcome = search.outcome_of(SurvivorSet.of_mask(mask, count))
        found = search.survivors_of(outcome)
        assert found is not None, outcome
        assert found.stale or search.outcome_of(found) == outcome
