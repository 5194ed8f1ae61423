"""The fault families that each target is given, and the reasons for those that it is not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import pytest

from oracles.violation import Violation
from powercut.fuzz.disk_faults import DiskFaults, by_share
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.fault_families import RULES, FaultFamily
from powercut.fuzz.source_patch import SourcePatch, patched
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget
from sim.choices import PlainChoices, SeededChoices
from sim.disk.crash.persistence import POSIX
from sim.world import World
from system.errors import LogDamaged
from tests.registry import REGISTRY

FAULTED = [target.tag for target in REGISTRY.all_targets() if not target.crash_free]
LEFT_OUT = {
    "atomic-file": ("clock", "delayed-barrier-error", "bit-rot", "misdirected-write"),
    "event-log-framed": (),
    "event-log-pending": (),
    "session-store": ("clock", "delayed-barrier-error", "bit-rot", "misdirected-write"),
    "recording": (),
    "durable": ("delayed-barrier-error", "bit-rot", "misdirected-write", "clock"),
    "activities": ("delayed-barrier-error", "bit-rot", "misdirected-write", "clock"),
    "runtime": ("delayed-barrier-error", "bit-rot", "misdirected-write"),
    "runtime-pending": ("delayed-barrier-error", "bit-rot", "misdirected-write"),
    "runtime-recorded": ("delayed-barrier-error", "bit-rot", "misdirected-write"),
    "runtime-segments": ("delayed-barrier-error", "bit-rot", "misdirected-write"),
    "runtime-collected": ("delayed-barrier-error", "bit-rot", "misdirected-write"),
    "runtime-durable": ("delayed-barrier-error", "bit-rot", "misdirected-write"),
}
DRAWS = 400
MOST_RUNS = 40
MOST_SEEDS = 400


def faults_of(target: AnyTarget) -> DiskFaults:
    return DiskFaults(World(target.make_host, PlainChoices()), target, Tally())


@cache
def printed(family: FaultFamily) -> frozenset[str]:
    return frozenset(
        rule.format(count=count, following=count + 1, size=size, sector=sector)
        for rule, count, size, sector in product(
            RULES[family], (1, 2, 3, 4), (1, 10, 100, 600), (0, 1, 2)
        )
    )


def families_of(plan: str) -> Sequence[FaultFamily]:
    """The families of a plan: one, or the two whose rules it joins."""
    one = [family for family in FaultFamily if plan in printed(family)]
    rules = plan.split("; ")
    for cut in range(1, len(rules)):
        if not one:
            parts = ("; ".join(rules[:cut]), "; ".join(rules[cut:]))
            found = [[f for f in FaultFamily if part in printed(f)] for part in parts]
            one = [family for families in found for family in families] if all(found) else []
    return one


@pytest.mark.parametrize("tag", FAULTED)
def test_target_draws_every_family_that_it_does_not_leave_out_for_a_reason(tag: str) -> None:
    target = REGISTRY.target(tag).make_target()
    assert tuple(target.families_left_out) == LEFT_OUT[tag]
    assert all(reason.strip() for reason in target.families_left_out.values())
    faults, choices = faults_of(target), SeededChoices(1)
    plans = [str(faults.propose(choices)["plan"]) for _ in range(DRAWS)]
    drawn = {family for plan in plans for family in families_of(plan)}
    assert drawn == set(FaultFamily) - set(target.families_left_out)


@pytest.mark.parametrize("tag", FAULTED)
def test_some_plans_have_rules_of_two_families(tag: str) -> None:
    faults, choices = faults_of(REGISTRY.target(tag).make_target()), SeededChoices(2)
    plans = [str(faults.propose(choices)["plan"]) for _ in range(DRAWS)]
    pairs = [families_of(plan) for plan in plans]
    assert DRAWS // 10 < sum(len(set(families)) == 2 for families in pairs) < DRAWS // 3


@pytest.mark.parametrize(
    ("tag", "family"),
    [(tag, family) for tag in FAULTED for family in FaultFamily if family not in LEFT_OUT[tag]],
)
def test_faults_of_every_family_reach_the_target(
    tag: str, family: FaultFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_target = REGISTRY.target(tag).make_target
    monkeypatch.setattr(type(make_target()), "fault_families", (family,))
    monkeypatch.setattr(type(make_target()), "fault_rules", ())
    runs = (SeededRun(make_target, POSIX, seed, steps=30).run() for seed in range(MOST_RUNS))
    assert any(run.tally.faults for run in runs)


UNCHECKED = SourcePatch(
    "system.storage.codec",
    """
    if not line.endswith(_SEALED % actual):
        raise BadSeal(_foreign(line) or _bad_crc(line, actual))
    """,
    """
    if line[-_SEAL_BYTES:-10] != _SEAL:
        raise BadSeal(_foreign(line) or _bad_crc(line, actual))
    """,
)
ONE_BARRIER = SourcePatch(
    "system.storage.log_scan", "BARRIERS_TO_TRUST: Final = 2", "BARRIERS_TO_TRUST: Final = 1"
)


UNREPORTED = SourcePatch(
    "system.storage.log_scan",
    """
    if gap.position < kept:
        self._damaged_middle(gap)
    """,
    "pass",
)


@pytest.mark.parametrize("tag", ["event-log-framed", "event-log-pending"])
@pytest.mark.parametrize(
    ("family", "bug"),
    [
        (FaultFamily.BIT_ROT, UNCHECKED),
        (FaultFamily.MISDIRECTED_WRITE, UNREPORTED),
        (FaultFamily.DELAYED_BARRIER_ERROR, ONE_BARRIER),
    ],
    ids=["a checksum is never compared", "a gap is not reported", "one barrier is trusted"],
)
def test_bug_that_only_silent_damage_shows_is_found(
    tag: str, family: FaultFamily, bug: SourcePatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with patched([bug], ["crash_tests"]):
        make_target = REGISTRY.target(tag).make_target
        monkeypatch.setattr(type(make_target()), "fault_families", (family,))
        runs = (
            SeededRun(make_target, POSIX, seed, steps=30, swarm=True).run()
            for seed in range(MOST_SEEDS)
        )
        failed = next((run for run in runs if run.failure is not None), None)
    assert failed is not None
    # A read of the running log may find the damage that the recovery has left. The patched
    # modules have a class of their own for that.
    is_read = type(failed.failure).__name__ == LogDamaged.__name__
    assert is_read or isinstance(failed.failure, Violation)


def test_every_family_comes_and_those_that_break_most_programs_come_more_often() -> None:
    shares = by_share(FaultFamily)
    assert set(shares) == set(FaultFamily)
    assert shares[: len(FaultFamily)] == tuple(FaultFamily)
    assert shares.count(FaultFamily.PARTIAL_WRITE) == 4
