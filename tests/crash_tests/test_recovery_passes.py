"""Each pass of recovery, crashed in each phase of each of its operations, and recovered."""

from __future__ import annotations

from itertools import product

import pytest

from system.storage.framing import Framing
from tests.crash_tests.recovery_crashes import PASS_NAMES, Crashes
from tests.crash_tests.sub_steps import PASSES, must_be_tried, of
from tests.sample import in_the_gate

READERS = ("apply_outboxes", "publish_report")
"""Passes that write nothing in a root without a database."""


@pytest.mark.parametrize(
    ("framing", "nested_every"),
    in_the_gate(product(Framing, (96, 24)), lambda case: case == (Framing.FRAMED, 96)),
)
def test_a_crashed_pass_is_recovered_to_the_same_state(
    framing: Framing, nested_every: int, subtests: pytest.Subtests
) -> None:
    crashes = Crashes(framing, nested_every)
    crashes.at_every_operation()
    for name in PASS_NAMES:
        with subtests.test(name):
            _check_pass(name, crashes)
    with subtests.test("recoveries of crashed recoveries are crashed as well"):
        assert sum(crashes.nested.values()) > 4_000 / nested_every
    with subtests.test("every site of the recovery is crashed"):
        assert [str(gap) for gap in crashes.coverage.gaps()] == []


def _check_pass(name: str, crashes: Crashes) -> None:
    if name in crashes.violations:
        raise crashes.violations[name]
    if name in READERS:
        assert name not in crashes.coverage.met
    else:
        assert crashes.checked[name]
    must_be_tried(of(name, PASSES[name], name), crashes.coverage)
