"""A mutant is planted in the modules of its target, and found only by its own properties."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from oracles.violation import LostAck, SilentEmpty, TornRecord, UnreadableAfterCrash
from powercut.fuzz.campaign.workers import work
from powercut.fuzz.hypothesis_settings import freeze_constants
from powercut.fuzz.mutant import Mutant, MutantEntry
from powercut.fuzz.mutant_examples import search_mutant
from powercut.fuzz.mutant_search import MutantSearch, search_swarm
from powercut.fuzz.planted_tests import run_tests
from powercut.fuzz.source_patch import SourcePatch
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.target_mistake import FailsAtStart, TargetMistake
from powercut.fuzz.time_limit import TimeOver
from sim.errors import HarnessError
from tests.meta.source_tree import ROOT
from tests.unit.fuzz.broken import careless
from tests.unit.fuzz.mutants import NO_BARRIER, PROGRAM
from tests.unit.fuzz.project import PROJECT

BUDGET = settings(
    max_examples=15, stateful_step_count=20, derandomize=True, database=None, deadline=None
)
FILE_TESTS = "tests/unit/fuzz/test_saved_file.py"
SHORT_WRITE = f"{FILE_TESTS}::test_a_short_write_is_completed"
WHOLE_FILE = f"{FILE_TESTS}::test_a_whole_file_is_read"

faulty_part = Mutant("no barrier at all", careless, (SilentEmpty, LostAck, TornRecord))
wrong_property = Mutant("no barrier at all", careless, (ZeroDivisionError,))
outdated = Mutant(
    "a patch of lines that are gone",
    "saved-file",
    (LostAck,),
    (SourcePatch(PROGRAM, "process.sync_all()", "pass"),),
)
harmless = Mutant(
    "a patch without an effect",
    "saved-file",
    (LostAck,),
    (SourcePatch(PROGRAM, "if sync:", "if sync:  # as before"),),
)
NO_START = (SourcePatch(PROGRAM, "swept = 0", "swept = 1 // 0"),)
raising, unreadable, losing = (
    Mutant("the first start fails", "saved-file", (kind,), NO_START)
    for kind in (ZeroDivisionError, UnreadableAfterCrash, LostAck)
)
without_properties = Mutant("found by nothing", "saved-file", ())
without_target = Mutant("neither target nor tests", patches=(NO_BARRIER,))
without_patch = Mutant("tests of the correct program", tests=(FILE_TESTS,))
two_ways = Mutant("a patch and a target", careless, (LostAck,), (NO_BARRIER,))

ONE_CALL = (SourcePatch(PROGRAM, "data = data[written:]", 'data = b""'),)
found_by_a_test = Mutant("a write is not completed", patches=ONE_CALL, tests=(SHORT_WRITE,))
found_by_one_test_of_two = Mutant(
    "a write is not completed", patches=ONE_CALL, tests=(SHORT_WRITE, WHOLE_FILE)
)
without_such_a_test = Mutant(
    "a write is not completed", patches=ONE_CALL, tests=("tests/absent.py",)
)


def entry(name: str) -> MutantEntry:
    """Return a mutant of this module, or a registered one."""
    return PROJECT.mutant(name if name in PROJECT.config.mutants else f"{__name__}:{name}")


def found_by(entry: MutantEntry) -> str:
    """Return the property by which a mutant is found; a function of its own for workers."""
    # Here and in a worker, the examples have no literals of the modules that are imported.
    freeze_constants()
    return search_mutant(entry, time.perf_counter, BUDGET, Path("failures")).broken


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["no-fsync", "faulty_part"])
def test_planted_bug_is_found_by_one_of_its_properties(name: str) -> None:
    search = search_mutant(entry(name), time.perf_counter, BUDGET, Path("failures"))
    assert search.found
    assert search.broken in {"SilentEmpty", "TornRecord", "LostAck"}
    assert 0 < search.steps <= 3
    assert search.story.startswith(f"FAILED  {search.broken}  on posix")
    assert len(list(Path("failures").iterdir())) == 1


def test_swarm_finds_the_planted_bug_in_the_same_run_for_the_same_seed() -> None:
    searches = [
        search_swarm(entry("no-fsync"), time.perf_counter, 60, seed, Path("failures"))
        for seed in (1, 1)
    ]
    assert [search.found for search in searches] == [True, True]
    assert searches[0].examples == searches[1].examples
    assert searches[0].story == searches[1].story


def test_swarm_ends_with_its_budget() -> None:
    search = search_swarm(entry("harmless"), iter(range(99)).__next__, 9, 1, Path("failures"))
    assert (search.found, search.broken) == (False, "")
    assert 0 < search.examples < 9


def test_a_failure_is_not_reduced_if_a_smaller_run_does_not_end() -> None:
    limits = []

    @contextmanager
    def within(seconds: float) -> Iterator[None]:
        limits.append(seconds)
        if len(limits) == 2:
            raise TimeOver
        yield

    search = search_swarm(entry("no-fsync"), time.perf_counter, 60, 1, Path("failures"), 5, within)
    assert search.found
    assert limits == [60, 15]


def searches_of(name: str) -> list[MutantSearch]:
    """Search a mutant in both ways."""
    mutant, folder = entry(name), Path("failures")
    return [
        search_swarm(mutant, time.perf_counter, 1, folder=folder),
        search_mutant(mutant, time.perf_counter, BUDGET, folder),
    ]


@pytest.mark.parametrize(
    ("name", "broken"),
    [("raising", "ZeroDivisionError"), ("unreadable", "UnreadableAfterCrash")],
)
def test_mutant_that_fails_at_its_first_start_is_found_by_that_exception(
    name: str, broken: str
) -> None:
    for search in searches_of(name):
        assert (search.found, search.broken, search.examples) == (True, broken, 1)
        assert search.story.startswith("target 'saved-file' fails at its first start")


def test_mutant_that_fails_at_its_first_start_in_another_way_is_refused() -> None:
    with pytest.raises(FailsAtStart, match=r"ZeroDivisionError.*, at .* in prepare_directory$"):
        searches_of("losing")


def load_few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pytest in another process load the plugin that our settings need, and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_timeout")


def outcome_of(name: str) -> tuple[bool, str]:
    """Run the tests of a mutant of this module; a function of its own for workers."""
    search = run_tests(entry(name), time.perf_counter)
    return search.found, search.broken


def test_bug_is_found_by_tests_that_all_fail_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    load_few_plugins(monkeypatch)
    (found, broken), *others = sorted(
        work(outcome_of, ["found_by_a_test", "found_by_one_test_of_two"], 1), reverse=True
    )
    assert (found, broken) == (True, SHORT_WRITE.rpartition("::")[2])
    assert others == [(False, "")]


def test_tests_that_cannot_be_run_are_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    load_few_plugins(monkeypatch)
    sentence = "its tests cannot be run: file or directory not found: tests/absent.py"
    with pytest.raises(TargetMistake, match=f"^{sentence}$"):
        list(work(outcome_of, ["without_such_a_test"], 1))


def test_failure_of_another_property_does_not_count() -> None:
    few = settings(BUDGET, max_examples=5)
    search = search_mutant(entry("wrong_property"), time.perf_counter, few, Path("failures"))
    assert search.broken
    assert not search.found


def test_mutant_without_an_effect_is_not_found() -> None:
    search = search_mutant(entry("harmless"), time.perf_counter, BUDGET, Path("failures"))
    assert (search.found, search.broken, search.steps) == (False, "", 0)
    assert search.examples >= BUDGET.max_examples


def test_correct_target_passes_after_a_mutant_of_it_was_found() -> None:
    assert found_by(entry("no-fsync"))
    correct = PROJECT.target("saved-file")
    assert found_by(MutantEntry("correct", f"{__name__}:harmless", correct)) == ""


def test_mutant_is_planted_in_worker_processes() -> None:
    entries = [entry("no-fsync"), entry("harmless")]
    assert sorted(work(found_by, entries, 2)) == ["", found_by(entries[0])]


def test_mutant_that_no_longer_applies_is_refused() -> None:
    with pytest.raises(HarnessError, match=r"^a source patch .* fits 0 times"):
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
    with pytest.raises(HarnessError, match="unknown target 'saved-flie'; known are saved-file, "):
        PROJECT.mutant(f"{__name__}:misspelt")


misspelt = Mutant("its target has no such tag", "saved-flie", (LostAck,))


def test_entry_names_the_target_that_it_patches() -> None:
    assert entry("no-fsync").target == TargetEntry("saved-file", f"{PROGRAM}:saved_file")


only_lost, only_empty, only_torn = (
    Mutant("no barrier at all", careless, (kind,)) for kind in (LostAck, SilentEmpty, TornRecord)
)


def test_the_search_goes_on_after_failures_of_another_kind(tmp_path: Path) -> None:
    """With one tag all searches do the same runs; each run fails in one of the three ways."""
    examples = []
    for name in ("faulty_part", "only_lost", "only_empty", "only_torn"):
        same = MutantEntry("same", f"{__name__}:{name}")
        search = search_swarm(same, time.process_time, 20, folder=tmp_path)
        assert search.found
        examples.append(search.examples)
    first, *others = examples
    assert min(others) == first < sorted(others)[1]
