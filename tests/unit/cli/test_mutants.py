"""``powercut mutants`` plants bugs, shows which were found, and fails when one was missed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.mutant_search import MutantSearch
from tests.unit.cli.command_line import json_of, powercut, write_project
from tests.unit.fuzz.project import PROJECT

SHOP = {
    "shop.py": """\
def price(name):
    return len(name)
""",
    "test_shop.py": """\
from shop import price

def test_tea_has_a_price():
    assert price("tea") == 3
""",
    "bugs_of_shop.py": """\
from powercut import Mutant, SourcePatch

free = Mutant(
    "nothing costs anything",
    patches=[SourcePatch("shop", "return len(name)", "return 0")],
    tests=["test_shop.py::test_tea_has_a_price"],
)
misspelt = Mutant("nothing costs anything", patches=free.patches, tests=["test_shop.py::test_te"])
""",
}
"""A program, a test of it, and a bug that the test finds."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)


def blind_to(
    *missed: str,
) -> Callable[[object, Sequence[MutantEntry], int, object], Iterator[MutantSearch]]:
    """Return searches that find every mutant but these, and end in reversed order."""

    def work(
        _search: object, entries: Sequence[MutantEntry], _processes: int, _describe: object
    ) -> Iterator[MutantSearch]:
        for entry in reversed(entries):
            broken = "" if entry.tag in missed else "LostAck"
            yield MutantSearch(entry.tag, "a bug", ("LostAck",), 50, 1.25, broken, 3)

    return work


def test_planted_bug_is_found_and_leaves_no_file() -> None:
    result = powercut("mutants", "no-fsync", "--json", "-")
    assert result.exit_code == ExitCode.CLEAN, result.output
    (found,) = json_of(result)["mutants"]
    assert found.keys() == {"id", "found", "examples", "seconds", "steps", "property"}
    assert (found["id"], found["found"]) == ("no-fsync", True)
    assert 0 < found["steps"] <= 3
    assert [path.name for path in Path().iterdir()] == ["pyproject.toml"]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, content in SHOP.items():
        (tmp_path / name).write_text(content, encoding="ascii")


@pytest.mark.usefixtures("shop")
def test_bugs_are_found_by_campaigns_and_by_tests() -> None:
    result = powercut("mutants", "bugs_of_shop:free", "no-fsync", "--seed", "1", "--json", "-")
    assert result.exit_code == ExitCode.CLEAN, result.output
    by_tests, by_campaign = json_of(result)["mutants"]
    assert by_tests["property"] == "test_tea_has_a_price"
    assert by_campaign["property"] in {"SilentEmpty", "TornRecord"}


@pytest.mark.usefixtures("shop")
def test_a_mutant_with_an_unknown_test_is_a_sentence_before_any_campaign() -> None:
    names = ("no-fsync", "bugs_of_shop:misspelt", "bugs_of_shop:free")
    result = powercut("mutants", *names, "--json", "out.json")
    assert result.exit_code == ExitCode.USAGE, result.output
    start = "Error: mutant 'bugs_of_shop:misspelt': its tests cannot be run: not found: "
    assert result.stderr.startswith(start)
    assert result.stderr.endswith("test_shop.py::test_te\n")
    assert result.stderr.count("\n") == 1
    assert "test_tea_has_a_price" in result.stdout
    written = json.loads(Path("out.json").read_text(encoding="ascii"))
    assert [search["id"] for search in written["mutants"]] == ["bugs_of_shop:free"]


def test_all_registered_mutants_are_searched_and_shown_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("powercut.cli.mutants.work", blind_to())
    result = powercut("mutants", "--json", "out.json")
    assert result.exit_code == ExitCode.CLEAN
    written = json.loads(Path("out.json").read_text(encoding="ascii"))
    assert written["schema"] == 1
    assert [search["id"] for search in written["mutants"]] == list(PROJECT.config.mutants)


def test_missed_mutant_is_a_missed_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powercut.cli.mutants.work", blind_to("no-fsync"))
    result = powercut("mutants", "no-fsync", "no-directory-fsync", "--json", "-")
    assert result.exit_code == ExitCode.GOAL_MISSED
    assert "missed, so powercut is blind to it: no-fsync\n" in result.stderr
    assert [search["found"] for search in json_of(result)["mutants"]] == [False, True]


def test_an_interrupt_shows_the_results_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*arguments: Any) -> Iterator[MutantSearch]:
        _search, entries, *_ = arguments
        if entries:
            yield MutantSearch(entries[0].tag, "a bug", ("LostAck",), 50, 1.25, "LostAck", 3)
            interrupt = KeyboardInterrupt()
            interrupt.add_note("run 0 of mutant 'b' has taken 9 s")
            raise interrupt

    monkeypatch.setattr("powercut.cli.mutants.work", work)
    result = powercut("mutants", "no-fsync", "no-directory-fsync", "--json", "out.json")
    assert result.exit_code == ExitCode.INTERRUPTED, result.output
    assert " found " in result.stdout
    assert result.stderr == "run 0 of mutant 'b' has taken 9 s\ninterrupted\n"
    written = json.loads(Path("out.json").read_text(encoding="ascii"))
    assert [search["id"] for search in written["mutants"]] == ["no-fsync"]


HANGING = """
from powercut import ActionKind, DiskTarget, LostAck, Mutant, SourcePatch

class Idle(DiskTarget):
    def __init__(self):
        self.made = True

    def actions(self):
        return [ActionKind("look", 1, lambda arguments: "done")]

    def recover(self, process):
        self.process = process

recovery, making = (
    Mutant("it hangs", "hanging_bugs:Idle", [LostAck], [SourcePatch("hanging_bugs", old, new)])
    for old, new in (
        ("self.process = process", "while True: pass"), ("self.made = True", "while True: pass")
    )
)
"""


@pytest.mark.parametrize(
    ("mutant", "beginning", "function"),
    [
        (
            "recovery",
            "run 0 of mutant 'hanging_bugs:recovery', .*; it was interrupted before its first step",
            "recover",
        ),
        ("making", "the planting of mutant 'hanging_bugs:making' was interrupted", "__init__"),
    ],
)
def test_a_run_that_does_not_end_is_ended_with_the_time_and_its_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str, beginning: str, function: str
) -> None:
    Path("hanging_bugs.py").write_text(HANGING, encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = powercut(
        "mutants", f"hanging_bugs:{mutant}", "no-fsync", "--seconds", "4", "--seed", "3"
    )
    assert result.exit_code == ExitCode.GOAL_MISSED, result.output
    assert re.search(
        rf"^{beginning}, at hanging_bugs\.py:\d+ in Idle\.{function}$", result.stdout, re.MULTILINE
    ), result.stdout
    assert " found " in result.stdout


def test_unknown_mutant_is_a_usage_mistake() -> None:
    result = powercut("mutants", "no-sync")
    assert result.exit_code == ExitCode.USAGE
    assert "unknown mutant 'no-sync'; known are no-fsync, " in result.stderr


MALFORMED = '''
from powercut import ActionKind, DiskTarget, LostAck, Mutant, SourcePatch

class Idle(DiskTarget):
    def actions(self):
        return [ActionKind("look", 1, lambda arguments: "done")]

    def recover(self, process):
        pass

def patched(*patch):
    return Mutant("a bug", "NAME:Idle", [LostAck], [SourcePatch("NAME", *patch)])

outdated = patched("no such line", "pass")
unmakeable = patched(
    "class Idle(DiskTarget):",
    """class Idle(DiskTarget):
    def __init__(self):
        raise ValueError(8)
""",
)
no_target = Mutant("a bug", lambda: 3, [LostAck])
no_property = Mutant("a bug", Idle, ["LostAck"])
one_property = Mutant("a bug", Idle, LostAck)
one_test = Mutant("a bug", tests="test_shop.py::test_tea")
no_factory = Mutant("a bug", 3, [LostAck])
'''


@pytest.mark.parametrize(
    ("mutant", "sentence"),
    [
        ("outdated", "mutant '{name}': a source patch of {module} fits 0 times instead of once"),
        ("unmakeable", "mutant '{name}': {module}:Idle raises ValueError when the target is made"),
        ("no_target", "mutant '{name}': {name} returns 3, which does not derive from powercut."),
        ("no_property", "{name} has the property 'LostAck', and must have classes of exceptions"),
        (
            "one_property",
            "{name} has properties=<class 'oracles.violation.LostAck'>, and must have a",
        ),
        ("one_test", "{name} has tests='test_shop.py::test_tea', and must have a list of them"),
        ("no_factory", "{name} has the target 3, and must have a tag, module:object or a callable"),
    ],
)
def test_mutant_that_cannot_be_searched_is_a_usage_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str, sentence: str
) -> None:
    module = f"malformed_{mutant}"
    Path(f"{module}.py").write_text(MALFORMED.replace("NAME", module), encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"{module}:{mutant}"
    result = powercut("mutants", name, "--seconds", "1", "--json", "out.json")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert not Path("out.json").exists()
    assert result.stderr.startswith(f"Error: {sentence.format(name=name, module=module)}")
    assert result.stderr.count("\n") == 1


def test_the_search_goes_on_after_a_mutant_that_cannot_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = MALFORMED.replace("NAME", "malformed_and_more")
    Path("malformed_and_more.py").write_text(source, encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = [f"malformed_and_more:{mutant}" for mutant in ("outdated", "no_target")]
    result = powercut("mutants", *names, "no-fsync")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert " found " in result.stdout
    assert result.stderr.count("Error: mutant 'malformed_and_more:") == 2
    assert result.stderr.count("\n") == 2
