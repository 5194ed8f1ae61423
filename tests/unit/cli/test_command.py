"""Options that are given twice: refused, unless both values count."""

from __future__ import annotations

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("run --model scc --model ext4", "--model"),
        ("explore --model scc --model ext4", "--model"),
        ("mutants --seconds 1 --seconds 2", "--seconds"),
        ("replay --target a failure --target b", "--target"),
        ("try --model scc --model ext4 -- true", "--model"),
        ("try -n 1 --checks 2 -- true", "--checks"),
        ("record -o a --out b -- true", "--out"),
        ("confirm --timeout 1 --timeout 2 recording", "--timeout"),
        ("calibrate --seed 1 --seed 2", "--seed"),
    ],
)
def test_an_option_of_one_value_is_given_once(line: str, option: str) -> None:
    result = powercut(*line.split())
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr == f"Error: {option} takes one value, and is given 2 times\n"


@pytest.mark.parametrize(
    "line",
    [
        "try --nested --nested --recording a",
        "try --recording a -- program --model scc --model ext4",
        "calibrate --judge a --judge b",
        "run --model scc --model ext4 --help",
    ],
)
def test_flags_and_options_of_the_program_may_be_repeated(line: str) -> None:
    assert "takes one value" not in powercut(*line.split()).output
