"""Outcomes are counted by the number of calls that had returned."""

from __future__ import annotations

from errno import EUCLEAN

from powercut.calibrate.crash_images import CrashImage
from powercut.calibrate.observations import Observations
from powercut.calibrate.write_log import Survivors


def test_image_belongs_to_the_last_call_that_had_returned() -> None:
    # The second and the third call wrote nothing.
    observations = Observations([1, 3, 3])
    observations.add(CrashImage(Survivors(-1), {0, 2, 3, 4}), {"f": "empty"})
    assert [(seen["k"], seen["n"]) for seen in observations.outcomes()] == [(0, 1), (1, 1), (3, 2)]


def test_an_outcome_names_the_first_image_that_showed_it() -> None:
    observations = Observations([])
    for survivors in (Survivors(0, (2, 3), (3, 512)), Survivors(0, (2,))):
        observations.add(CrashImage(survivors, {4}), {"g": "dir"})
    assert observations.outcomes() == [
        {"k": 0, "out": {"g": "dir"}, "n": 2, "how": [4, 0, [2, 3], [3, 512]]}
    ]


def test_image_that_the_kernel_refuses_is_no_outcome() -> None:
    observations = Observations([])
    observations.refuse(CrashImage(Survivors(2, (4,))), OSError(EUCLEAN, "refused"))
    assert observations.refused == [["EUCLEAN", 2, [4], None]]
    assert observations.outcomes() == []
