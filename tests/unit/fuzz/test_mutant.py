"""A mutant is planted in the modules of its target, and found only by its own properties."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import settings

from oracles.violation import LostAck, SilentEmpty, TornRecord
from powercut.fuzz.campaign.workers import work
from powercut.fuzz.mutant import Mutant, MutantEntry
from powercut.fuzz.mutant_search import search_mutant, search_swarm
from powercut.fuzz.planted_tests import run_tests
from powercut.fuzz.source_patch import SourcePatch
from powercut.fuzz.target import TargetEntry
from sim.errors import HarnessError
from tests.meta.source_tree import ROOT
from tests.registry import REGISTRY
from tests.unit.cli.command_line import careless_file

BUDGET = settings(
    max_examples=30, stateful_step_count=20, derandomize=True, database=None, deadline=None
)
NO_BARRIER = SourcePatch("system.storage.atomic_file", "file.fsync()", "pass")

patched_file = Mutant(
    "the file is not synced", "atomic-file", (SilentEmpty, TornRecord), (NO_BARRIER,)
)
faulty_part = Mutant("no barrier at all", careless_file, (SilentEmpty, LostAck, TornRecord))
wrong_property = Mutant("no barrier at all", careless_file, (ZeroDivisionError,))
outdated = Mutant(
    "a patch of lines that are gone",
    "atomic-file",
    (LostAck,),
    (SourcePatch("system.storage.atomic_file", "file.sync_all()", "pass"),),
)
harmless = Mutant(
    "a patch without an effect",
    "atomic-file",
    (LostAck,),
    (SourcePatch("system.storage.atomic_file", "file.fsync()", "file.fsync()  # as before"),),
)
without_properties = Mutant("found by nothing", "atomic-file", ())
without_target = Mutant("neither target nor tests", patches=(NO_BARRIER,))
without_patch = Mutant("tests of the correct program", tests=("tests/unit/system",))

_FILE_TESTS = "tests/unit/system/test_atomic_file.py"
_TAKEN_NAME = f"{_FILE_TESTS}::test_the_name_of_a_temporary_file_left_by_a_crash_is_not_used_again"
_WHOLE_FILE = f"{_FILE_TESTS}::test_a_whole_file_is_read"
NO_OTHER_NAME = (
    SourcePatch("system.storage.atomic_file", "except FileExistsError:", "except KeyError:"),
)
found_by_a_test = Mutant("a name is taken", patches=NO_OTHER_NAME, tests=(_TAKEN_NAME,))
found_by_one_test_of_two = Mutant(
    "a name is taken", patches=NO_OTHER_NAME, tests=(_TAKEN_NAME, _WHOLE_FILE)
)
without_such_a_test = Mutant("a name is taken", patches=NO_OTHER_NAME, tests=("tests/absent.py",))
two_ways = Mutant("a patch and a target", careless_file, (LostAck,), (NO_BARRIER,))


def entry(name: str) -> MutantEntry:
    return REGISTRY.mutant(f"{__name__}:{name}")


def found_by(entry: MutantEntry) -> str:
    """Return the property by which a mutant is found; a function of its own for workers."""
    return search_mutant(entry, time.perf_counter, BUDGET, Path("failures")).broken


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["patched_file", "faulty_part"])
def test_planted_bug_is_found_by_one_of_its_properties(name: str) -> None:
    search = search_mutant(entry(name), time.perf_counter, BUDGET, Path("failures"))
    assert search.found
    assert search.broken in {"SilentEmpty", "TornRecord", "LostAck"}
    assert 0 < search.steps <= 3
    assert search.story.startswith(f"FAILED  {search.broken}  on posix")
    assert len(list(Path("failures").iterdir())) == 1


def test_swarm_finds_the_planted_bug_in_the_same_run_for_the_same_seed() -> None:
    searches = [
        search_swarm(entry("patched_file"), time.perf_counter, 60, seed, Path("failures"))
        for seed in (1, 1)
    ]
    assert [search.found for search in searches] == [True, True]
    assert searches[0].examples == searches[1].examples
    assert searches[0].story == searches[1].story


def test_swarm_ends_with_its_budget() -> None:
    search = search_swarm(entry("harmless"), iter(range(99)).__next__, 9, 1, Path("failures"))
    assert (search.found, search.broken) == (False, "")
    assert 0 < search.examples < 9


def outcome_of(name: str) -> tuple[bool, str]:
    """Run the tests of a mutant of this module; a function of its own for workers."""
    search = run_tests(entry(name), time.perf_counter)
    return search.found, search.broken


def test_bug_is_found_by_tests_that_all_fail_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (found, broken), *others = sorted(
        work(outcome_of, ["found_by_a_test", "found_by_one_test_of_two"], 1), reverse=True
    )
    assert (found, broken) == (True, _TAKEN_NAME.rpartition("::")[2])
    assert others == [(False, "")]


def test_tests_that_cannot_be_run_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(HarnessError, match="its tests cannot be run"):
        list(work(outcome_of, ["without_such_a_test"], 1))


def test_failure_of_another_property_does_not_count() -> None:
    search = search_mutant(entry("wrong_property"), time.perf_counter, BUDGET, Path("failures"))
    assert search.broken
    assert not search.found


def test_mutant_without_an_effect_is_not_found() -> None:
    search = search_mutant(entry("harmless"), time.perf_counter, BUDGET, Path("failures"))
    assert (search.found, search.broken, search.steps) == (False, "", 0)
    assert search.examples >= 30


def test_correct_target_passes_after_a_mutant_of_it_was_found() -> None:
    assert found_by(entry("patched_file"))
    correct = REGISTRY.target("atomic-file")
    assert found_by(MutantEntry("correct", f"{__name__}:harmless", correct)) == ""


def test_mutant_is_planted_in_worker_processes() -> None:
    entries = [entry("patched_file"), entry("harmless")]
    assert sorted(work(found_by, entries, 2)) == ["", found_by(entries[0])]


def test_mutant_that_no_longer_applies_is_refused() -> None:
    with pytest.raises(HarnessError, match=r"outdated': a source patch .* fits 0 times"):
        found_by(entry("outdated"))


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("without_properties", "names no property by which it may be found"),
        ("without_target", "must have either a target or tests"),
        ("without_patch", "has tests and no source patch"),
        ("two_ways", "has source patches, and a target that was imported without them"),
        ("BUDGET", "must be a powercut.Mutant"),
        ("absent", "has no object 'absent'"),
    ],
)
def test_malformed_mutant_is_refused_in_one_sentence(name: str, complaint: str) -> None:
    with pytest.raises(HarnessError, match=complaint):
        entry(name)


def test_mutant_of_an_unknown_target_is_refused() -> None:
    with pytest.raises(HarnessError, match="unknown target 'atomic-flie'; known are atomic-file, "):
        REGISTRY.mutant(f"{__name__}:misspelt")


misspelt = Mutant("its target has no such tag", "atomic-flie", (LostAck,))


def test_entry_names_the_target_that_it_patches() -> None:
    assert entry("patched_file").target == TargetEntry(
        "atomic-file", "crash_tests.targets.atomic_file:atomic_file"
    )
