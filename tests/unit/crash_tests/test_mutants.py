"""The mutants of this repository: each known bug is one, and something finds each of them.

Campaigns have found most of them; ``tests/regressions`` replays the reproducers.
"""

from __future__ import annotations

import re
import time
from functools import partial

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.campaign.workers import work
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.planted_tests import run_tests
from tests.meta.source_tree import ROOT
from tests.registry import REGISTRY
from tests.sample import Sample
from tests.unit.cli.command_line import json_of, powercut

BUGS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22)
RECORDING_BUGS = (1, 2, 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 18, 19)
FURTHER_BUGS = 40
MUTANTS = [REGISTRY.mutant(tag) for tag in REGISTRY.config.mutants]


def test_every_known_bug_has_a_mutant_and_so_have_many_others() -> None:
    found = [re.fullmatch(r"([RI])(\d+)(-.*)?", mutant.tag) for mutant in MUTANTS]
    known = [(bug[1], int(bug[2])) for bug in found if bug is not None]
    expected = [("R", bug) for bug in BUGS] + [("I", bug) for bug in RECORDING_BUGS]
    assert list(dict.fromkeys(known)) == expected
    assert len(MUTANTS) - len(known) >= FURTHER_BUGS


def test_every_mutant_has_a_reproducer_or_tests_that_fail() -> None:
    reproduced = {path.stem.partition("_")[0] for path in ROOT.glob("tests/regressions/*.json")}
    with_tests = {mutant.tag for mutant in MUTANTS if mutant.mutant.tests}
    assert not reproduced & with_tests
    assert [each.tag for each in MUTANTS if each.tag not in reproduced | with_tests] == []


@pytest.mark.parametrize("entry", MUTANTS, ids=[each.tag for each in MUTANTS])
def test_the_patches_of_every_mutant_fit(entry: MutantEntry) -> None:
    sources: dict[str, str] = {}
    for patch in entry.mutant.patches:
        if patch.module not in sources:
            path = ROOT / f"{patch.module.replace('.', '/')}.py"
            sources[patch.module] = path.read_text("utf-8")
        sources[patch.module] = patch.apply(sources[patch.module])


def test_the_tests_that_mutants_name_fail_with_them(
    monkeypatch: pytest.MonkeyPatch, sample: Sample
) -> None:
    monkeypatch.chdir(ROOT)
    entries = sample([mutant for mutant in MUTANTS if mutant.mutant.tests], 8)
    searches = work(partial(run_tests, clock=time.perf_counter), entries, 1)
    assert [search.tag for search in searches if not search.found] == []


def test_the_command_finds_them_by_tests_and_by_campaigns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = powercut("mutants", "torn-tail-is-damage", "R9", "--seed", "1", "--json", "-")
    assert result.exit_code == ExitCode.CLEAN, result.output
    by_tests, by_campaign = json_of(result)["mutants"]
    assert by_tests["property"] == "test_the_beginning_of_a_line_is_torn"
    assert by_campaign["property"] == "UnreadableAfterCrash"
    assert (by_campaign["id"], by_campaign["found"]) == ("R9", True)
    assert 0 < by_campaign["steps"] <= 8
