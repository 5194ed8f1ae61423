"""Any target runs under Hypothesis; a failure is reduced and written to a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.errors import StopTest
from hypothesis.internal.conjecture.data import ConjectureData

from powercut.fuzz.conjecture import DrawnChoices
from powercut.fuzz.drivers.hypothesis_driver import fuzz
from powercut.fuzz.drivers.replay import Verdict, replay
from powercut.fuzz.reproducer import read_reproducer
from powercut.fuzz.story import story
from sim.errors import HarnessError
from tests.unit.fuzz.broken import sound, undurable

BUDGET = settings(
    max_examples=30, stateful_step_count=20, derandomize=True, database=None, deadline=None
)


def test_a_failure_is_reduced_to_a_story_of_very_few_actions(tmp_path: Path) -> None:
    campaign = fuzz(undurable, budget=BUDGET, folder=tmp_path)
    (finding,) = campaign.findings
    # An older value can come back only if there were two.
    fewest = {"SilentEmpty": 2, "LostAck": 3}
    assert len(finding.run.log.steps) <= fewest[finding.run.log.broken]
    lines = story(finding).splitlines()
    assert lines[0].startswith(f"FAILED  {finding.run.log.broken}  on posix  fingerprint ")
    assert any("lost   rename of " in line for line in lines)
    assert lines[-1] == f"  replay  powercut replay {finding.path}"


def test_a_finding_of_hypothesis_replays_byte_for_byte(tmp_path: Path) -> None:
    campaign = fuzz(undurable, budget=BUDGET, folder=tmp_path)
    result = replay(read_reproducer(campaign.findings[0].path), undurable)
    assert (result.verdict, result.identical) == (Verdict.SAME, True)


def test_a_sound_target_passes_and_leaves_no_file(tmp_path: Path) -> None:
    campaign = fuzz(sound, budget=BUDGET, folder=tmp_path)
    assert campaign.findings == []
    assert campaign.tally.runs >= 30
    assert campaign.tally.power_cuts > 0
    assert list(tmp_path.iterdir()) == []


def test_choices_are_drawn_from_the_data_of_hypothesis() -> None:
    data = ConjectureData.for_choices((3, 5))
    choices = DrawnChoices(data)
    assert [choices.integer("a", 0, 9), choices.integer("b", 4, 4), choices.integer("c", 0, 9)] == [
        3, 4, 5,
    ]  # fmt: skip
    with pytest.raises(StopTest):
        choices.integer("d", 0, 9)


def test_an_empty_range_is_the_harness_s_own_mistake() -> None:
    with pytest.raises(HarnessError, match=r"nothing to choose from: a\[1\.\.0\]"):
        DrawnChoices(ConjectureData.for_choices(())).integer("a", 1, 0)
