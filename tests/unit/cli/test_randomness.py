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


_LIBRARY = """
import datetime, random

class Fake:
    def __init__(self):
        self.random = random.Random()
        self.today = datetime.date.today()

    def seed(self, number):
        self.random.seed(number)

    def word(self):
        return self.random.choice(["a", "b"])
"""
_OF_A_LIBRARY = (
    "; call the library when your module is loaded, or pass it seeds and times that are drawn "
    "from the choices of propose\n"
)


@pytest.fixture
def library(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an installed library that reads chance when an object of it is made."""
    folder = tmp_path / "installed"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr("sim.loop.sandbox._LIBRARIES", (f"{folder}/",))
    (folder / f"library_of_{module}.py").write_text(_LIBRARY, encoding="ascii")
    return f"library_of_{module}"


@pytest.mark.parametrize("is_lazy", [False, True])
def test_randomness_of_a_library_is_refused_with_the_line_that_calls_it(
    module: str, library: str, tmp_path: Path, is_lazy: bool
) -> None:
    source = f"{DIRECTORIES}\nclass Wrong(Directories):\n    def __init__(self):\n"
    if is_lazy:
        (tmp_path / "installed" / f"{library}.py").write_text(_LIBRARY + "\nFake()", "ascii")
        source += f"        import {library}\n"
    else:
        source = f"import {library}\n{source}        {library}.Fake()\n"
    where = f"{tmp_path}/installed/{library}.py:6 in Fake.__init__"
    called_at = f"{Path.cwd()}/{module}.py:{source.count(chr(10))} in Wrong.__init__"
    assert refusal(module, source) == (
        "Error: random.Random without a seed was called inside a simulated world, at "
        f"{where}, called at {called_at}{_OF_A_LIBRARY}"
    )


def test_library_that_is_seeded_from_the_choices_is_repeatable(module: str, library: str) -> None:
    source = f"""import {library}
{DIRECTORIES}
FAKE = {library}.Fake()

class Right(Directories):
    def actions(self):
        return [ActionKind("put", 1, self.put, self.choose)]

    def choose(self, choices):
        FAKE.seed(choices.integer("seed", 0, 1 << 32))
        return {{"word": FAKE.word()}}
"""
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut("run", f"{module}:Right", "--examples", "3", "-n", "1")
    assert result.exit_code != ExitCode.USAGE, result.output


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
