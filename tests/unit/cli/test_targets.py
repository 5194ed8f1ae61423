"""The targets of the command line are the machines, each with its marks."""

from __future__ import annotations

from crash_tests.targets.targets import TARGETS as SUBJECTS
from powercut.registry import all_targets


def test_every_target_is_registered() -> None:
    assert [target.tag for target in all_targets()] == list(SUBJECTS)


def test_subjects_carry_the_tag_under_which_they_are_named() -> None:
    for target in all_targets():
        assert target.make_target().tag == target.tag
