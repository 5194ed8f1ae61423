"""Every known bug is found within the budget of the gate, by its own properties, in a short story.

Most bugs of the whole runtime, of recording, and of durable execution are searched under
``--run-stress`` only, because they take longest. The
other mutants are not searched here: their reproducers are replayed (``tests/regressions``), and
``powercut mutants`` searches them.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import settings

from crash_tests.mutants.event_log import entry_has_no_directory_barrier
from powercut.fuzz.drivers.hypothesis_driver import fuzz
from powercut.fuzz.mutant_examples import search_mutant
from powercut.fuzz.source_patch import patched
from powercut.fuzz.story import story
from tests.registry import REGISTRY
from tests.sample import in_the_gate

MOST_STEPS = 8
MOST_STEPS_OF_RECORDING = 6
REDUCTION_SECONDS = 12.0
"""To leave out steps takes 1.3 to 5 seconds, by the machine; the rest is for their arguments."""
GATE = settings.get_profile("ci")

KNOWN_BUGS = [
    tag
    for tag in REGISTRY.config.mutants
    if re.match(r"[RC]\d", tag) and not REGISTRY.mutant(tag).mutant.tests
]

BUGS_OF_RECORDING = [tag for tag in REGISTRY.config.mutants if re.match(r"I\d", tag)]
CHEAP_BUGS_OF_RECORDING = {"I7", "I8", "I8-replayable", "I14"}
"""Found and reduced in a second at most, so the gate searches them."""

LONG = {"runtime", "durable"}


def is_cheap(tag: str) -> bool:
    """Return whether the gate searches this bug; of the others it replays reproducers."""
    if tag in BUGS_OF_RECORDING:
        return tag in CHEAP_BUGS_OF_RECORDING
    return str(REGISTRY.mutant(tag).mutant.target) not in LONG


@pytest.mark.parametrize("tag", in_the_gate((*KNOWN_BUGS, *BUGS_OF_RECORDING), is_cheap))
def test_gate_finds_the_planted_bug_and_reduces_it(tag: str, tmp_path: Path) -> None:
    mutant = REGISTRY.mutant(tag)
    search = search_mutant(mutant, time.process_time, GATE, tmp_path, REDUCTION_SECONDS)
    assert search.broken, f"{search.title}: no run failed"
    assert search.found, f"{search.title}: found by {search.broken}, expected {search.expected}"
    most_steps = MOST_STEPS if tag in KNOWN_BUGS else MOST_STEPS_OF_RECORDING
    assert search.steps <= most_steps, search.story


def test_patch_that_two_mutants_share_is_no_bug_by_itself(tmp_path: Path) -> None:
    target = REGISTRY.target("event-log-pending")
    with patched([entry_has_no_directory_barrier], ["crash_tests"]):
        findings = fuzz(target.make_target, budget=GATE, folder=tmp_path).findings
    assert not findings, story(findings[0])
