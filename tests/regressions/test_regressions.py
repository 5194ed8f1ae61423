"""Failures that were fixed: each reproducer in this folder must pass for ever.

To add one, move its file from ``.powercut/failures`` here, under a name that says what was
wrong. A name that begins with the tag of a mutant is a failure of that mutant, which the
system never had: the mutant must go on failing in the same way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.fuzz.drivers.replay import Verdict, replay
from powercut.fuzz.reproducer import read_reproducer
from tests.registry import REGISTRY

FILES = sorted(Path(__file__).parent.glob("*.json"))
OF_MUTANTS = [path for path in FILES if path.stem.split("_")[0] in REGISTRY.config.mutants]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_fixed_failure_stays_fixed(path: Path) -> None:
    reproducer = read_reproducer(path)
    result = replay(reproducer, REGISTRY.target(reproducer.log.target).make_target)
    assert result.verdict is Verdict.PASSES, str(result)


@pytest.mark.parametrize("path", OF_MUTANTS, ids=[path.stem for path in OF_MUTANTS])
def test_mutant_still_fails_its_reproducer(path: Path) -> None:
    reproducer = read_reproducer(path)
    with REGISTRY.mutant(path.stem.split("_")[0]).planted() as make_target:
        result = replay(reproducer, make_target)
    assert result.verdict is Verdict.SAME, str(result)
