"""Lazy exploration against every crash image, for random programs and random checks.

The gate draws 640 pairs of one crash and 352 with crashes of the check. ``STRESS`` pairs of
each kind run with ``--run-stress``.
"""

from __future__ import annotations

import pytest

from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.undecided.progress import UNLIMITED
from tests.litmus.failing_steps import FAILING
from tests.litmus.lazy_law import Pair, nested_crashes, one_crash, pair
from tests.litmus.observer import ANY

GATE = 80
NESTED_GATE = 40
STRESS = 12_500

_MODELS = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


def _drawn(seed: int, most_calls: int, *, writes: bool = True) -> Pair:
    """Return a pair; in every third one, barriers fail and pages are dropped."""
    steps = FAILING if seed % 3 == 2 else ANY
    return pair(seed, most_calls, writes=writes, steps=steps)


def _tears(seed: int) -> int:
    return (UNLIMITED, UNLIMITED, 1, 0)[seed % 4]


@_MODELS
def test_boxes_and_crash_images_lead_to_the_same_leaves(model: PersistenceModel) -> None:
    images = 0
    for seed in range(GATE):
        images += one_crash(_drawn(seed, 7, writes=seed % 2 == 0), model, _tears(seed))
    assert images > GATE


@_MODELS
def test_crashes_of_the_check_show_what_their_images_show(model: PersistenceModel) -> None:
    checked = sum(nested_crashes(_drawn(seed, 4), model, 1) for seed in range(NESTED_GATE))
    for seed in range(NESTED_GATE // 10):
        checked += nested_crashes(_drawn(seed, 3), model, 2)
    assert checked > NESTED_GATE / 2


@pytest.mark.stress
@_MODELS
def test_a_hundred_thousand_pairs(model: PersistenceModel) -> None:
    for seed in range(1_000_000, 1_000_000 + STRESS):
        one_crash(_drawn(seed, 7, writes=seed % 2 == 0), model, _tears(seed))


@pytest.mark.stress
@_MODELS
def test_many_crashes_of_the_check(model: PersistenceModel) -> None:
    for seed in range(1_000_000, 1_000_000 + STRESS // 10):
        nested_crashes(_drawn(seed, 4), model, 1)
        nested_crashes(_drawn(seed + 1_000_000, 3), model, 2)
