"""The nightly campaigns: random, under every model, with a corpus, one issue for a fingerprint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.disk.crash.persistence import MODELS
from tests.meta.source_tree import ROOT

RECORDER = """#!{python}
import json, os, sys
with open(os.environ["CALLS"], "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["issue", "list"]:
    print(json.dumps([{{"title": "LostAck in runtime [aaaaaaaa]"}}]))
sys.exit(1 if os.environ.get("FAILING", "none") in sys.argv else 0)
"""


class Recorded:
    """Runs a script of ``.ci`` with a stand-in for the program that it starts."""

    def __init__(self, folder: Path, program: str) -> None:
        self._calls = folder / "calls"
        self.program = folder / program
        self.program.write_text(RECORDER.format(python=sys.executable), encoding="ascii")
        self.program.chmod(0o755)

    def run(self, *command: str, **environment: str) -> int:
        path = f"{self.program.parent}:{os.environ['PATH']}"
        named = {"CALLS": str(self._calls), "PATH": path, "POWERCUT": str(self.program)}
        named["PYTHON"] = sys.executable
        finished = subprocess.run(
            [ROOT / ".ci" / command[0], *command[1:]], env={**os.environ, **named, **environment},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        return finished.returncode

    @property
    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._calls.read_text("ascii").splitlines()]


def option(call: list[str], name: str) -> str:
    return call[call.index(name) + 1]


def test_night_is_shared_among_all_models_each_with_its_corpus(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, "powercut")
    assert recorded.run("nightly", "1200", "7") == 0
    calls = recorded.calls
    assert sorted(option(call, "--model") for call in calls) == sorted(MODELS)
    seconds = {option(call, "--model"): int(option(call, "--seconds")) for call in calls}
    assert seconds["posix"] == 600
    assert 600 <= sum(seconds.values()) - seconds["posix"] < 600 + len(MODELS)
    for call in calls:
        assert call[:3] == ["run", "--profile", "nightly"]
        assert option(call, "--seed") == "7"
        assert option(call, "--corpus") == f".powercut/corpus/{option(call, '--model')}"


def test_seed_of_a_night_is_not_fixed(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, "powercut")
    recorded.run("nightly", "1")
    (seed,) = {option(call, "--seed") for call in recorded.calls}
    assert int(seed) > 1_600_000_000


def test_failure_under_one_model_fails_the_night_and_ends_no_other_campaign(
    tmp_path: Path,
) -> None:
    recorded = Recorded(tmp_path, "powercut")
    assert recorded.run("nightly", "12", FAILING="posix") == 1
    assert len(recorded.calls) == len(MODELS)


def test_each_new_fingerprint_becomes_one_issue(tmp_path: Path) -> None:
    recorded, failures = Recorded(tmp_path, "gh"), tmp_path / "failures"
    failures.mkdir()
    for fingerprint in ("aaaaaaaa", "bbbbbbbb"):
        failure = {
            "fingerprint": fingerprint, "property": "LostAck", "target": "runtime",
            "model": "posix", "statement": "an acknowledged entry is lost", "steps": ["s"],
        }  # fmt: skip
        (failures / f"{fingerprint}.json").write_text(json.dumps(failure), encoding="ascii")
    assert recorded.run("issues", str(failures)) == 0
    (created,) = [call for call in recorded.calls if call[:2] == ["issue", "create"]]
    assert option(created, "--title") == "LostAck in runtime [bbbbbbbb]"
    assert "powercut replay bbbbbbbb.json" in option(created, "--body")
    assert '"steps": ["s"]' in option(created, "--body")


def test_night_without_a_failure_opens_no_issue(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, "gh")
    assert recorded.run("issues", str(tmp_path / "none")) == 0
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    "line",
    [
        "- run: make nightly SECONDS=14400",
        "path: .powercut/corpus",
        "run: .ci/issues .powercut/failures",
        "issues: write",
    ],
)
def test_workflow_of_the_night_keeps_the_corpus_and_opens_issues(line: str) -> None:
    workflow = (ROOT / ".github/workflows/nightly.yml").read_text(encoding="utf-8")
    assert line in workflow
