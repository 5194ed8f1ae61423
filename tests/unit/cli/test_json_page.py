"""The members of docs/json.md are those that the commands write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from powercut.fuzz.mutant_search import MutantSearch
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT
from tests.unit.cli.command_line import CARELESS, json_of, powercut, write_project
from tests.unit.fuse.recorded import needs_mounts, powercut_in

EXPLORED, RUN = (ROOT / "docs" / "json.md").read_text("utf-8").split("\n## `run`\n")


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, saved_file=CARELESS)


def members(page: str, heading: str) -> set[str]:
    """Return the members in the table with this heading."""
    return {name for row in table_rows(page, heading) for name in quoted(row[0])}


def check_verdicts(models: dict[str, Any], findings: list[dict[str, Any]]) -> None:
    for model in models.values():
        assert set(model) == members(EXPLORED, "member of a model")
        if failure := model["first_failure"]:
            assert set(failure) == {"property", "statement", "crashes"}
    assert findings
    for finding in findings:
        assert set(finding) == members(EXPLORED, "member of a finding")


def test_the_members_of_explore() -> None:
    found = json_of(powercut("explore", "save-without-fsync", "--json", "-"))
    own = members(EXPLORED, "member of explore")
    assert set(found) == members(EXPLORED, "member") | own
    for models in (found["models"], *found["targets"].values()):
        check_verdicts(models, found["findings"]["save-without-fsync"])


@needs_mounts
def test_the_members_of_try(tmp_path: Path) -> None:
    options = ("--model", "scc", "--setup", "echo old > f", "--json", "-")
    ran = powercut_in(tmp_path, "try", *options, "--", "sh", "-c", "echo new > t; mv t f")
    found = json.loads(ran.stdout)
    assert set(found) == members(EXPLORED, "member") | members(EXPLORED, "member of try")
    check_verdicts(found["models"], found["findings"])


def test_the_members_of_run() -> None:
    arguments = ("run", "saved-file", "--examples", "6", "--steps", "10", "-n", "1")
    found = json_of(powercut(*arguments, "--json", "-"))
    counts = members(RUN, "member of the counts")
    assert set(found) == members(RUN, "member") | counts
    assert set(found["marks"]) == {"reached", "total", "never"}
    (target,) = found["targets"].values()
    assert set(target) == counts | members(RUN, "member of a target")
    assert found["failures"]
    for failure in found["failures"]:
        assert set(failure) == members(RUN, "member of a failure")


def test_the_members_of_a_search() -> None:
    search = MutantSearch("m", "a bug", ("LostAck",), examples=1, seconds=0.5)
    assert set(search.plain()) == members(RUN, "member of a search")
