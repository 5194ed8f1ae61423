"""Lazy exploration against every crash image, for random programs and random checks.

The gate draws 640 pairs of one crash and 352 with crashes of the check. ``STRESS`` pairs of
each kind run with ``--run-stress``.
"""

from __future__ import annotations

import pytest

from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.undecided.progress import UNLIMITED
from tests.litmus.lazy_law import nested_crashes, one_crash, pair

GATE = 80
NESTED_GATE = 40
STRESS = 12_500

_MODELS = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


def _tears(seed: int) -> int:
    return (UNLIMITED, UNLIMITED, 1, 0)[seed % 4]


@_MODELS
def test_boxes_and_crash_images_lead_to_the_same_leaves(model: PersistenceModel) -> None:
    images = 0
    for seed in range(GATE):
        images += one_crash(pair(seed, 7, writes=seed % 2 == 0), model, _tears(seed))
    assert images > GATE


@_MODELS
def test_crashes_of_the_check_show_what_their_images_show(model: PersistenceModel) -> None:
    checked = sum(nested_crashes(pair(s, 4, writes=True), model, 1) for s in range(NESTED_GATE))
    for seed in range(NESTED_GATE // 10):
        checked += nested_crashes(pair(seed, 3, writes=True), model, 2)
    assert checked > NESTED_GATE / 2


@pytest.mark.stress
@_MODELS
def test_a_hundred_thousand_pairs(model: PersistenceModel) -> None:
    for seed in range(STRESS):
        one_crash(pair(1_000_000 + seed, 7, writes=seed % 2 == 0), model, _tears(seed))


@pytest.mark.stress
@_MODELS
def test_many_crashes_of_the_check(model: PersistenceModel) -> None:
    for seed in range(STRESS // 10):
        nested_crashes(pair(1_000_000 + seed, 4, writes=True), model, 1)
        nested_crashes(pair(2_000_000 + seed, 3, writes=True), model, 2)
