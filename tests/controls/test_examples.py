"""The programs in ``examples/``: the weakest crash finds each bug, and none if it is corrected."""

from __future__ import annotations

import inspect
import warnings
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from faults.crash_point import CrashKind
from oracles.violation import LostAck
from powercut.explorer.explore import explore, explore_models
from powercut.explorer.limits import Engine, Limits
from sim.disk.crash.persistence import MODELS
from tests.meta.source_tree import ROOT
from tests.sample import in_the_gate

FEW = Limits(states_per_point=8, samples=4, engine=Engine.BRUTE)
MOST_LINES = 20
KILL, POWER_CUT = CrashKind.KILL, CrashKind.POWER_CUT

UNSAFE = [
    ("settings_file", "save", POWER_CUT, "does not exist"),
    ("dumb_database", "update", KILL, "only [] are left"),
    ("archive", "add_two", KILL, "BadZipFile"),
    ("edit_in_place", "edit", KILL, "No such file"),
    ("shelf", "remember", KILL, "only [] are left"),
    ("mail_folder", "read_one", POWER_CUT, "2 messages"),
    ("rotating_log", "rotate", POWER_CUT, "are left"),
    ("boltons_save", "save", POWER_CUT, "is lost"),
    ("portalocker_save", "save", POWER_CUT, "is lost"),
    ("luigi_target", "write_report", POWER_CUT, "the report is not there"),
    ("whoosh_index", "add_two", POWER_CUT, "only ['Anna'] are left"),
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
CORRUPT_ON_EXT4 = [
    ("luigi_target", "write_report", "the report is ''"),
    pytest.param("whoosh_index", "add_two", "UnpicklingError", marks=pytest.mark.stress),
]
# The gate leaves these out: it has programs like them, and the settings of SQLite elsewhere.
SLOW = {
    ("shelf", "remember"),
    ("whoosh_index", "add_two"),
    ("sqlite_commits", "delete_full"),
    ("sqlite_commits", "delete_extra"),
    ("sqlite_commits", "truncate_full"),
}
OPTIONAL = {"luigi_target": "luigi"}


def workload_of(module: str, function: str) -> Any:
    return getattr(module_of(module), function)


def module_of(name: str) -> ModuleType:
    if name in OPTIONAL and find_spec(OPTIONAL[name]) is None:
        pytest.skip(f"{OPTIONAL[name]} is not part of the extra dev: it brings a web server")
    with warnings.catch_warnings():
        # The compiler's remarks on old packages.
        warnings.simplefilter("ignore")
        return import_module(f"examples.{name}")


@pytest.mark.parametrize(
    ("module", "function", "kind", "text"), in_the_gate(UNSAFE, lambda each: each[:2] not in SLOW)
)
def test_a_careless_program_is_caught_under_the_strongest_model(
    module: str, function: str, kind: CrashKind, text: str
) -> None:
    workload = workload_of(module, function)
    found = explore(workload, getattr(workload, "check", None), "scc", FEW)
    assert not found.safe
    assert found.failures[0].crashes[0].kind is kind
    assert any(text in str(failure.violation) for failure in found.failures)


@pytest.mark.parametrize(("module", "function", "text"), CORRUPT_ON_EXT4)
def test_a_rename_without_an_fsync_leaves_no_content_on_ext4(
    module: str, function: str, text: str
) -> None:
    workload = workload_of(module, function)
    found = explore(workload, workload.check, "ext4", FEW)
    assert any(text in str(failure.violation) for failure in found.failures)


@pytest.mark.parametrize("name", ["boltons_save", "portalocker_save"])
def test_an_atomic_save_loses_its_acknowledgement_alone(name: str) -> None:
    found = explore(workload_of(name, "save"), None, "posix", FEW)
    assert {type(failure.violation) for failure in found.failures} == {LostAck}


@pytest.mark.parametrize(("module", "function"), in_the_gate(SAFE, lambda each: each not in SLOW))
@pytest.mark.parametrize("model", in_the_gate(["scc", "xfs", "btrfs"], {"btrfs"}.__contains__))
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


# A program that has a page is no workload.
WORKLOADS = sorted(
    path.stem
    for path in (ROOT / "examples").glob("[!_]*.py")
    if not path.with_suffix(".md").exists()
)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_is_short_and_listed_here(name: str) -> None:
    listed = {(module, function) for module, function, *_ in (*UNSAFE, *SAFE)}
    assert f"[{name}.py]({name}.py)" in (ROOT / "examples" / "README.md").read_text("utf-8")
    module = module_of(name)
    for each, function in inspect.getmembers(module, inspect.isfunction):
        is_own = function.__module__ == module.__name__
        if is_own and list(inspect.signature(function).parameters) == ["ack"]:
            assert (name, each) in listed
            assert len(inspect.getsource(function).splitlines()) <= MOST_LINES
