"""The mutants of this repository: each known bug is one, and something finds each of them.

Campaigns have found most of them; ``tests/regressions`` replays the reproducers.
"""

from __future__ import annotations

import re
import time
from functools import partial

import pytest

from powercut.fuzz.campaign.workers import work
from powercut.fuzz.planted_tests import run_tests
from tests.meta.source_tree import ROOT
from tests.registry import REGISTRY

BUGS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22)
FURTHER_BUGS = 40
MUTANTS = [REGISTRY.mutant(tag) for tag in REGISTRY.config.mutants]


def test_every_known_bug_has_a_mutant_and_so_have_many_others() -> None:
    found = [re.fullmatch(r"R(\d+)(-.*)?", mutant.tag) for mutant in MUTANTS]
    known = [int(bug[1]) for bug in found if bug is not None]
    assert tuple(dict.fromkeys(known)) == BUGS
    assert len(MUTANTS) - len(known) >= FURTHER_BUGS


def test_every_mutant_has_a_reproducer_or_tests_that_fail() -> None:
    reproduced = {path.stem.partition("_")[0] for path in ROOT.glob("tests/regressions/*.json")}
    with_tests = {mutant.tag for mutant in MUTANTS if mutant.mutant.tests}
    assert not reproduced & with_tests
    assert [each.tag for each in MUTANTS if each.tag not in reproduced | with_tests] == []


def test_the_tests_that_mutants_name_fail_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    entries = [mutant for mutant in MUTANTS if mutant.mutant.tests]
    searches = work(partial(run_tests, clock=time.perf_counter), entries, 1)
    assert [search.tag for search in searches if not search.found] == []
