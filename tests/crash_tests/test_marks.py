"""A campaign of a fixed size reaches every mark of every target, torn writes among them."""

from __future__ import annotations

import pytest

from oracles.marks import TORN
from oracles.runtime.marks import (
    COLLECTION_FINISHED,
    RARE_MARKS,
    RARE_WORK_MARKS,
    RUNTIME_MARKS,
    SNAPSHOT_UNFINISHED,
)
from powercut.fuzz.campaign.campaign import Plan
from sim.disk.crash.persistence import POSIX, SCC, PersistenceModel
from tests.registry import REGISTRY
from tests.sample import in_the_gate

SEED = 6
SHORTER = {"durable": 13, "recording": 2, "runtime-durable": 4}
"""Seeds with which these reach their marks in half the time or less."""
MOST_RUNS = {
    "atomic-file": 50,
    "event-log-framed": 250,
    "event-log-pending": 250,
    "session-store": 100,
    "recording": 1_000,
    "durable": 1_000,
    "activities": 100,
    "runtime": 500,
    "runtime-pending": 100,
    "runtime-recorded": 100,
    "runtime-segments": 100,
    "runtime-collected": 100,
    "runtime-durable": 150,
}
"""Each campaign ends as soon as every mark is reached."""

IN_THE_GATE = {"atomic-file", "event-log-framed", "session-store", "recording"}
"""The others take up to ten seconds each."""

ELSEWHERE = {
    "runtime-pending": RARE_MARKS,
    "runtime-recorded": RARE_MARKS,
    "runtime-segments": (*RUNTIME_MARKS, SNAPSHOT_UNFINISHED),
    "runtime-collected": (*RUNTIME_MARKS, COLLECTION_FINISHED),
    "runtime-durable": (*RUNTIME_MARKS, *RARE_WORK_MARKS),
}
"""Marks that depend neither on framing, recording nor segments: ``runtime`` reaches them,
``durable`` those of blocked tasks and missed occurrences, and ``test_dead_outcome_crash_points``
that of a dead outcome.

The workload ``event-log-segments`` is crashed at every operation; tests of the collector interrupt
the removal of files.
"""


def never_reached(tag: str, model: PersistenceModel = POSIX) -> list[str]:
    """Return the marks of a target that its campaign does not reach."""
    target = REGISTRY.target(tag)
    seed = SHORTER.get(tag, SEED)
    plan = Plan((target,), model, seed, steps=30, examples=MOST_RUNS[tag], various=True)
    missing = [mark for mark in target.marks if mark not in ELSEWHERE.get(tag, ())]
    for number in range(MOST_RUNS[tag]):
        missing = list(plan.run(target, number).run().tally.marks.never(missing))
        if not missing:
            break
    return missing


def test_every_target_with_marks_has_a_campaign_and_expects_torn_writes() -> None:
    targets = [target for target in REGISTRY.all_targets() if target.marks]
    assert [target.tag for target in targets] == list(MOST_RUNS)
    assert all(TORN in target.marks for target in targets)


@pytest.mark.parametrize("tag", in_the_gate(MOST_RUNS, IN_THE_GATE.__contains__))
def test_campaign_of_fixed_size_reaches_every_mark(tag: str) -> None:
    assert never_reached(tag) == []


def test_campaign_that_tears_no_write_fails_with_that_mark() -> None:
    assert never_reached("atomic-file", SCC) == [TORN]
