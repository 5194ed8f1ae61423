"""Each pass of recovery, crashed in each phase of each operation that it does, and recovered."""

from __future__ import annotations

import pytest

from system.storage.framing import Framing
from tests.crash_tests.recovery_crashes import PASS_NAMES, Crashes
from tests.crash_tests.sub_steps import PASSES, must_be_tried, of

READERS = ("reclaim", "publish")
"""They change nothing on the disk."""


@pytest.mark.parametrize("framing", list(Framing), ids=[f.value for f in Framing])
def test_what_a_crashed_pass_leaves_is_recovered_to_the_same_state(
    framing: Framing, subtests: pytest.Subtests
) -> None:
    crashes = Crashes(framing)
    crashes.at_every_operation()
    for name in PASS_NAMES:
        with subtests.test(name):
            _judge(name, crashes)
    with subtests.test("a recovery of a crashed recovery was crashed as well"):
        assert sum(crashes.nested.values()) > 100
    with subtests.test("no crash of an operation of a recovery was left out"):
        assert [str(gap) for gap in crashes.coverage.gaps()] == []


def _judge(name: str, crashes: Crashes) -> None:
    if name in crashes.violations:
        raise crashes.violations[name]
    if name in READERS:
        assert name not in crashes.coverage.met
    else:
        assert crashes.judged[name]
    # H-10
    must_be_tried(of(name, PASSES[name], f"Recovery.{name}"), crashes.coverage)
