"""Each pass of recovery, crashed in each phase of each operation that it does, and recovered."""

from __future__ import annotations

import pytest

from system.storage.framing import Framing
from tests.machines.recovery_crashes import PASS_NAMES, crashes
from tests.machines.sub_steps import PASSES, must_be_tried, of

READERS = ("reclaim", "publish")
"""They change nothing on the disk."""

framings = pytest.mark.parametrize("framing", list(Framing), ids=[f.value for f in Framing])


@pytest.mark.parametrize("name", [name for name in PASS_NAMES if name not in READERS])
@framings
def test_what_a_crashed_pass_leaves_is_recovered_to_the_same_state(
    name: str, framing: Framing
) -> None:
    found = crashes(framing)
    if name in found.violations:
        raise found.violations[name]
    assert found.judged[name]


@framings
def test_a_recovery_of_a_crashed_recovery_can_be_crashed_as_well(framing: Framing) -> None:
    assert sum(crashes(framing).nested.values()) > 100


@pytest.mark.parametrize("name", READERS)
@framings
def test_a_pass_that_only_reads_has_nothing_to_be_crashed_in(name: str, framing: Framing) -> None:
    assert name not in crashes(framing).coverage.met


@pytest.mark.parametrize("name", PASS_NAMES)
@framings
def test_every_sub_step_of_a_pass_was_crashed(name: str, framing: Framing) -> None:
    # H-10
    steps = of(name, PASSES[name], f"Recovery.{name}")
    must_be_tried(steps, crashes(framing).coverage)


@framings
def test_no_crash_of_an_operation_of_a_recovery_was_left_out(framing: Framing) -> None:
    assert [str(gap) for gap in crashes(framing).coverage.gaps()] == []
