"""A mutant is planted in the modules of its target, and found only by its own properties."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import settings

from oracles.violation import LostAck, SilentEmpty, TornRecord
from powercut.fuzz.campaign.workers import work
from powercut.fuzz.mutant import Mutant, MutantEntry
from powercut.fuzz.mutant_search import search_mutant
from powercut.fuzz.source_patch import SourcePatch
from powercut.fuzz.target import TargetEntry
from sim.errors import HarnessError
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
