"""``powercut explore`` on the workloads of this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.meta.source_tree import ROOT
from tests.registry import REGISTRY
from tests.sample import in_the_gate
from tests.unit.cli.command_line import json_of, powercut

LONG = ("event-log-framed", "event-log-pending", "recording")
"""Workloads that take five seconds or more."""
HOLDS = ("safe on posix", "no failure in a sample on posix")
QUICK = ("--states", "64", "--engine", "brute")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command in the repository; keep failures elsewhere."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("powercut.cli.finding_keeper.FAILURES", tmp_path / "failures")


# The runtime takes a minute; test_runtime_workload.py explores it.
@pytest.mark.parametrize(
    "tag",
    in_the_gate(
        [tag for tag in REGISTRY.config.workloads if not tag.startswith("runtime")],
        lambda tag: tag not in LONG,
    ),
)
def test_workloads_hold_exactly_if_they_are_sound(tag: str) -> None:
    result = powercut("explore", tag, "--model", "posix", *QUICK)
    if REGISTRY.workload(tag).sound:
        assert result.exit_code == ExitCode.CLEAN, result.stdout
        assert result.stdout.splitlines()[-2] in HOLDS
    else:
        assert result.exit_code == ExitCode.VIOLATION
        assert result.stdout.splitlines()[-2] == "unsafe on posix"


def test_without_a_workload_the_sound_workloads_run() -> None:
    found = json_of(powercut("explore", "--model", "scc", "--json", "-"))
    assert list(found["targets"]) == [workload.tag for workload in REGISTRY.sound_workloads()]
    assert found["verdict"] == "clean"
    states = [target["scc"]["states"] for target in found["targets"].values()]
    assert found["models"] == {
        "scc": {
            "safe": True, "states": sum(states), "executions": sum(states),
            "survivor_sets": None, "exhaustive": True, "how": "exhaustive", "within": [],
            "stopped": False, "first_failure": None,
        }
    }  # fmt: skip


def test_beyond_the_limit_of_states_the_verdict_is_sampled() -> None:
    found = json_of(powercut("explore", "event-log-pending", "--model", "posix", *QUICK,
                             "--json", "-"))  # fmt: skip
    assert found["verdict"] == "clean"
    assert found["models"]["posix"]["exhaustive"] is False


def test_every_survivor_set_of_sqlite_is_decided() -> None:
    found = json_of(powercut("explore", "sqlite-delete-extra", "--model", "posix",
                             "--engine", "lazy", "--json", "-"))["models"]["posix"]  # fmt: skip
    assert (found["safe"], found["how"]) == (True, "exhaustive")
    assert found["executions"] < 200
    assert found["survivor_sets"] > 1 << 37
