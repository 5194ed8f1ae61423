"""Failures that were fixed: each reproducer in this room must pass, for ever.

To add one, move its file from ``.powercut/failures`` here and give it a name that tells. A name
that begins with the identity of a mutant is the failure of that hole, which never was in
``system``: its file must go on failing there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from crash_tests.mutants.registry import MUTANTS, mutant_named
from crash_tests.mutants.search import subject_of
from crash_tests.targets.targets import target_named
from powercut.fuzz.drivers.replay_driver import Verdict, replay
from powercut.report.reproducer import read_reproducer

FILES = sorted(Path(__file__).parent.glob("*.json"))
OF_MUTANTS = [path for path in FILES if path.stem.split("_")[0] in MUTANTS]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_fixed_failure_stays_fixed(path: Path) -> None:
    reproducer = read_reproducer(path)
    result = replay(reproducer, target_named(reproducer.target))
    assert result.verdict is Verdict.PASSES, str(result)


@pytest.mark.parametrize("path", OF_MUTANTS, ids=[path.stem for path in OF_MUTANTS])
def test_the_hole_that_a_reproducer_was_made_of_still_fails_it(path: Path) -> None:
    reproducer = read_reproducer(path)
    mutant = mutant_named(path.stem.split("_")[0])
    result = replay(reproducer, partial(subject_of, mutant))
    assert result.verdict is Verdict.SAME, str(result)
