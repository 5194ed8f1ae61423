"""Failures that were fixed: each reproducer in this room must pass, for ever.

To add one, move its file from ``.powercut/failures`` here and give it a name that tells.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.drivers.replay_driver import Verdict, replay
from powercut.machines.targets import target_named
from powercut.reproducer import read_reproducer

FILES = sorted(Path(__file__).parent.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_fixed_failure_stays_fixed(path: Path) -> None:
    reproducer = read_reproducer(path)
    result = replay(reproducer, target_named(reproducer.target))
    assert result.verdict is Verdict.PASSES, str(result)
