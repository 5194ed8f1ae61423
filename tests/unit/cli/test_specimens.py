"""``powercut mutants`` plants holes, tells which it found, and fails when it missed one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from crash_tests.mutants.registry import MUTANTS
from crash_tests.mutants.search import Row
from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import json_of, powercut


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def blind_to(*missed: str) -> Callable[[object, Sequence[str], int], Iterator[Row]]:
    """Searches that find everything else, the last one first."""

    def work(_search: object, identities: Sequence[str], _processes: int) -> Iterator[Row]:
        for identity in reversed(identities):
            found = identity not in missed
            yield Row(identity, "a hole", found, 50, 1.25, 3 * found, "LostAck" * found)

    return work


def test_a_planted_hole_is_found_and_leaves_no_file() -> None:
    result = powercut("mutants", "R9", "--json", "-")
    assert result.exit_code == ExitCode.CLEAN, result.output
    (found,) = json_of(result)["mutants"]
    assert found.keys() == {"id", "found", "examples", "seconds", "steps"}
    assert (found["id"], found["found"]) == ("R9", True)
    assert 0 < found["steps"] <= 8
    assert list(Path().iterdir()) == []


def test_all_are_planted_and_told_in_the_order_of_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("powercut.cli.mutants.work", blind_to())
    result = powercut("mutants", "--json", "out.json")
    assert result.exit_code == ExitCode.CLEAN
    written = json.loads(Path("out.json").read_text(encoding="ascii"))
    assert written["schema"] == 1
    assert [told["id"] for told in written["mutants"]] == list(MUTANTS)


def test_a_hole_that_is_missed_is_a_goal_that_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powercut.cli.mutants.work", blind_to("R4"))
    result = powercut("mutants", "R4", "R5", "--json", "-")
    assert result.exit_code == ExitCode.GOAL_MISSED
    assert "missed, so powercut is blind to it: R4\n" in result.stderr
    assert [told["found"] for told in json_of(result)["mutants"]] == [False, True]


def test_an_unknown_hole_is_a_mistake_of_the_user() -> None:
    result = powercut("mutants", "R99")
    assert result.exit_code == ExitCode.USAGE
    assert "unknown mutant 'R99'; known are R1, " in result.stderr
