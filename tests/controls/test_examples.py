"""The programs in ``examples/``: each finding is found by the weakest crash, a twin is silent."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from faults.crash_point import CrashKind
from powercut.explorer.explore import explore, explore_models
from powercut.explorer.limits import Engine, Limits
from sim.disk.crash.persistence import MODELS
from tests.meta.source_tree import ROOT

FEW = Limits(states_per_point=8, samples=4, engine=Engine.BRUTE)
MOST_LINES = 20
KILL, POWER_CUT = CrashKind.KILL, CrashKind.POWER_CUT

UNSAFE = [
    ("settings_file", "save", POWER_CUT, "does not exist"),
    ("dumb_database", "update", KILL, "only [] are left"),
    ("shelf", "remember", KILL, "only [] are left"),
    ("mail_folder", "read_one", POWER_CUT, "2 messages"),
    ("rotating_log", "rotate", POWER_CUT, "are left"),
    ("sqlite_commits", "journal_off", KILL, "malformed"),
    ("sqlite_commits", "delete_full", POWER_CUT, "are left"),
    ("sqlite_commits", "wal_normal", POWER_CUT, "are left"),
]
SAFE = [
    ("settings_file", "save_durably"),
    ("atomic_writes", "save"),
    ("rotating_log", "rotate_durably"),
    ("sqlite_commits", "wal_full"),
    ("sqlite_commits", "delete_extra"),
    ("sqlite_commits", "truncate_full"),
]


def workload_of(module: str, function: str) -> Any:
    return getattr(import_module(f"examples.{module}"), function)


@pytest.mark.parametrize(("module", "function", "kind", "text"), UNSAFE)
def test_a_careless_program_is_caught_under_the_strongest_model(
    module: str, function: str, kind: CrashKind, text: str
) -> None:
    workload = workload_of(module, function)
    found = explore(workload, getattr(workload, "check", None), "scc", FEW)
    assert not found.safe
    assert found.failures[0].crashes[0].kind is kind
    assert any(text in str(failure.violation) for failure in found.failures)


@pytest.mark.parametrize(("module", "function"), SAFE)
@pytest.mark.parametrize("model", ["scc", "xfs", "btrfs"])
def test_a_correct_program_is_silent(module: str, function: str, model: str) -> None:
    workload = workload_of(module, function)
    found = explore(workload, getattr(workload, "check", None), model, FEW)
    assert found.safe, found.failures[0].violation


@pytest.mark.stress
@pytest.mark.parametrize(("module", "function"), SAFE)
def test_a_correct_program_is_silent_under_every_model(module: str, function: str) -> None:
    workload = workload_of(module, function)
    found = explore_models(workload, getattr(workload, "check", None))
    assert {name: each.safe for name, each in found.items()} == dict.fromkeys(MODELS, True)


def test_every_workload_is_short_and_listed_here() -> None:
    listed = {(module, function) for module, function, *_ in (*UNSAFE, *SAFE)}
    for path in (ROOT / "examples").glob("*.py"):
        if path.stem.startswith("_"):
            continue
        module = import_module(f"examples.{path.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_own = function.__module__ == module.__name__
            if is_own and list(inspect.signature(function).parameters) == ["ack"]:
                assert (path.stem, name) in listed
                assert len(inspect.getsource(function).splitlines()) <= MOST_LINES
