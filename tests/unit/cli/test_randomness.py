"""Randomness beside the choices is refused wherever a target has code, and named with its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import DIRECTORIES, powercut, refusal

_IMPORTS = """
import datetime, os, random, secrets, time, uuid
from random import randrange
"""
_REMEDY = "; draw it from the choices that propose is given\n"


@pytest.mark.parametrize(
    "member",
    [
        "def __init__(self): self.{}",
        "def attach(self, world): self.{}",
        "def actions(self): self.{}; return [ActionKind('put', 1, self.put)]",
        "def actions(self): return [ActionKind('put', 1, self.put, lambda _: {{'key': self.{}}})]",
        "def actions(self): return [ActionKind('put', 1, self.put, ready=lambda: self.{} != 7)]",
    ],
    ids=["constructor", "attach", "actions", "propose", "ready"],
)
@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("random.random()", "random.random"),
        ("randrange(9)", "random.randrange"),
        ("random.Random()", "random.Random without a seed"),
        ("os.urandom(4)", "os.urandom"),
        ("uuid.uuid4()", "uuid.uuid4"),
        ("secrets.token_hex()", "secrets.token_hex"),
        ("time.time()", "time.time"),
        ("datetime.datetime.now()", "datetime.datetime.now"),
    ],
)
def test_randomness_that_prepares_a_run_or_a_step_is_refused(
    module: str, member: str, call: str, name: str
) -> None:
    source = f"{_IMPORTS}{DIRECTORIES}\nclass Wrong(Directories):\n    {member.format('draw()')}\n"
    source += f"    def draw(self): return str({call})\n"
    place = f"{Path.cwd()}/{module}.py:{source.count(chr(10))} in Wrong.draw"
    assert refusal(module, source) == (
        f"Error: {name} was called inside a simulated world, at {place}{_REMEDY}"
    )


def test_preparation_may_read_files_and_seeded_numbers(module: str) -> None:
    source = f"""{_IMPORTS}{DIRECTORIES}
class Right(Directories):
    def __init__(self):
        with open(__file__) as file:
            self.words = file.read().split()
        self.number = random.Random(7)

    def actions(self):
        return [ActionKind("put", 1, self.put, self.choose)]

    def choose(self, choices):
        os.stat(__file__)
        return {{"word": choices.pick("word", self.words), "n": self.number.randrange(9)}}
"""
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut("run", f"{module}:Right", "--examples", "3", "-n", "1")
    assert result.exit_code != ExitCode.USAGE, result.output


@pytest.mark.parametrize("processes", ["1", "2"])
def test_run_that_differs_when_it_is_repeated_is_a_mistake(module: str, processes: str) -> None:
    source = f"""import itertools
{DIRECTORIES}
NUMBERS = itertools.count()

class Counting(Directories):
    families_left_out = {{family: "this test" for family in FaultFamily}}

    def put(self, arguments):
        self.process.close(self.process.open("/f", 0o101))
        return f"stored {{next(NUMBERS) < 9}}"
"""
    source = source.replace("DiskTarget", "DiskTarget, FaultFamily", 1)
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut("run", f"{module}:Counting", "--examples", "3", "-n", processes)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert re.match(
        rf"Error: target '{module}:Counting' is not repeatable: step \d+ of run 0 is 'put\(\) "
        r"stored True', and 'put\(\) stored False' when the run is repeated; the target depends ",
        result.stderr,
    )
    assert result.stderr.endswith(", id(), hash(), or the order of a set\n")
