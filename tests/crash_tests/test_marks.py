"""A campaign of a fixed size reaches every mark of every target, torn writes among them."""

from __future__ import annotations

import pytest

from powercut.fuzz.campaign.campaign import Plan
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY

SEED = 2
RUNS = {
    "atomic-file": 10,
    "event-log-framed": 40,
    "event-log-pending": 40,
    "session-store": 20,
    "runtime": 60,
    "runtime-pending": 25,
}


def test_every_target_with_marks_has_a_campaign() -> None:
    assert [target.tag for target in REGISTRY.all_targets() if target.marks] == list(RUNS)


@pytest.mark.parametrize("tag", RUNS)
def test_campaign_of_fixed_size_reaches_every_mark(tag: str) -> None:
    target = REGISTRY.target(tag)
    plan = Plan((target,), POSIX, SEED, steps=30, examples=RUNS[tag], various=True)
    missing = set(target.marks) - set(target.rare)
    for number in range(RUNS[tag]):
        missing -= plan.run(target, number).run().tally.marks.reached.keys()
        if not missing:
            return
    assert not missing
