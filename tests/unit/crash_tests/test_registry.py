"""The registry of this repository: every entry can be loaded under its tag."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from powercut.cli.main import cli
from tests.meta.source_tree import ROOT
from tests.registry import REGISTRY
from tests.unit.cli.command_line import completion


def test_every_target_of_this_repository_is_registered_under_its_tag() -> None:
    assert [target.tag for target in REGISTRY.all_targets()] == list(REGISTRY.config.targets)
    for target in REGISTRY.all_targets():
        assert target.make_target().actions()


def test_every_workload_of_this_repository_can_be_loaded() -> None:
    for tag in REGISTRY.config.workloads:
        workload = REGISTRY.workload(tag)
        assert (workload.tag, bool(workload.about)) == (tag, True)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("powercut run event", ["event-log-framed", "event-log-pending"]),
        ("powercut explore sqlite-wal", ["sqlite-wal-full", "sqlite-wal-normal"]),
        ("powercut mutants R21-r", ["R21-reminders"]),
        ("powercut replay --target life", ["lifecycle"]),
    ],
)
def test_tags_are_completed(
    words: str, completed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    ran = CliRunner().invoke(cli, prog_name="powercut", env=completion(words))
    assert ran.stdout.splitlines() == [f"plain,{value}" for value in completed], ran.stderr
