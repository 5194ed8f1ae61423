"""Which moments an observed outcome may belong to."""

from __future__ import annotations

from powercut.calibrate.judgement import JudgedOutcome, Simulated
from sim.disk.crash.persistence import EXT4


def test_an_outcome_may_belong_to_the_call_that_has_not_returned_and_to_no_later_one() -> None:
    program = Simulated([], [["creat", "f"], ["creat", "g"]])
    first, both = {"f": "empty"}, {"f": "empty", "g": "empty"}
    assert program.allows(EXT4, JudgedOutcome(0, first))
    assert not program.allows(EXT4, JudgedOutcome(0, both))
    assert program.allows(EXT4, JudgedOutcome(1, both))
    assert program.allows(EXT4, JudgedOutcome(2, both))
