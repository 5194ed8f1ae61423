"""The registry: entries by tag or import string; a mistake in one is a sentence and exit code 2."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import json_of, powercut

TARGET = """
from powercut import ActionKind, DiskTarget

class Good(DiskTarget):
    def actions(self):
        return [ActionKind("make", 1, self.make)]

    def make(self, arguments):
        try:
            self.host.mkdir(f"/{len(self.host.listdir('/'))}")
        except OSError as refused:
            return str(refused)
        return "made"

    def recover(self, host):
        self.host = host

class WithoutActions(Good):
    def actions(self):
        return []

class Unmodelled(Good):
    def recover(self, host):
        host.mkfifo("/pipe")

class Escaping(Good):
    def recover(self, host):
        import time
        time.time()

class Raising(Good):
    def __init__(self):
        raise ValueError("no server")

class RaisingTwoLines(Good):
    def __init__(self):
        raise ValueError("no server\\nat this address")

class Leaving(Good):
    def __init__(self):
        raise SystemExit(0)

class LeavingInActions(Good):
    def actions(self):
        raise SystemExit("no server")

class ActionOfText(Good):
    def actions(self):
        return ["put"]

class Weightless(Good):
    def actions(self):
        return [ActionKind("put", 0, str)]

class Twins(Good):
    def actions(self):
        return [ActionKind("put", 1, str), ActionKind("put", 1, repr)]

class NamedAsTheHarness(Good):
    def actions(self):
        return [ActionKind("crash_and_recover", 1, str)]

class UnknownFamily(Good):
    families_left_out = {"clok": "it reads no clock"}

class WrongRule(Good):
    fault_rules = ["write * #1 EWHAT"]

class RuleOfUnknownName(Good):
    fault_rules = ["write * #{number} EIO"]

class RulesAsText(Good):
    fault_rules = "write * #1 EIO"

class NoFamilies(Good):
    families_left_out = None

class WithoutActionsInGenerator(Good):
    def actions(self):
        yield from ()

class RaisingInGenerator(Good):
    def actions(self):
        yield ActionKind("put", 1, str)
        raise ValueError("no server")

class NamedByNumber(Good):
    def actions(self):
        return [ActionKind(5, 1, str)]

class ReadyWithoutFunction(Good):
    def actions(self):
        return [ActionKind("put", 1, str, ready=True)]

class Unusual(Good):
    fault_rules = ("write * #{count} short:{size}B; write * #{following} EIO", "read * #1 EIO")

    def actions(self):
        yield from {kind.name: kind for kind in super().actions()}.values()

class WithoutRecovery(DiskTarget):
    def actions(self):
        return []

def no_target():
    return 7

number = 7
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the current directory, different in each test."""
    name = "".join(c if c.isalnum() else "_" for c in f"module_{request.node.name}")
    (tmp_path / f"{name}.py").write_text(TARGET, encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def refused(*arguments: str) -> str:
    result = powercut(*arguments)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_target_is_made_under_its_tag_or_its_import_string(module: str) -> None:
    Path("pyproject.toml").write_text(
        f"[tool.powercut.targets]\nkv = '{module}:Good'", encoding="ascii"
    )
    for name in ("kv", f"{module}:Good"):
        result = powercut("run", name, "--examples", "2", "--steps", "3", "-n", "1", "--json", "-")
        assert result.exit_code == ExitCode.CLEAN, result.output
        assert list(json_of(result)["targets"]) == [name]


def test_actions_may_be_a_generator_and_fault_rules_may_have_numbers_to_choose(module: str) -> None:
    result = powercut("run", f"{module}:Unusual", "--examples", "9", "--steps", "9", "-n", "1")
    assert result.exit_code == ExitCode.CLEAN, result.output


def test_worker_processes_import_the_target_themselves(module: str) -> None:
    result = powercut("run", f"{module}:Good", "--examples", "40", "--steps", "30", "-n", "2")
    assert result.exit_code == ExitCode.CLEAN, result.output


@pytest.mark.parametrize(
    ("command", "kind", "example"),
    [
        ("run", "target", "kv = 'crash_tests.kv:target'"),
        ("explore", "workload", "kv-save = 'crash_tests.kv:save'"),
        ("mutants", "mutant", "kv-no-fsync = 'crash_tests.kv:no_fsync'"),
    ],
)
def test_project_without_entries_is_shown_an_example(command: str, kind: str, example: str) -> None:
    assert refused(command) == (
        f"Error: no {kind} is registered; add a line such as {example} under "
        f"[tool.powercut.{kind}s] to pyproject.toml, or name one: "
        f"powercut {command} module:object\n"
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("WithoutActions", "has no actions: its actions() returns none of them"),
        ("Raising", "raises ValueError when the target is made: no server, at {file}:33 in "),
        ("RaisingTwoLines", "raises ValueError when the target is made: no server at this address"),
        ("Leaving", "raises SystemExit when the target is made: 0, at {file}:41 in Leaving."),
        ("LeavingInActions", "raises SystemExit when the target is made: no server, at {file}:"),
        ("ActionOfText", "has the action 'put', which is no powercut.ActionKind"),
        ("Weightless", "has the action 'put' of weight 0; a weight is a whole number from 1"),
        ("Twins", "has two actions with the name 'put'; give each its own"),
        ("NamedAsTheHarness", "has an action with the name 'crash_and_recover', which is one of "),
        ("UnknownFamily", "leaves out the fault family 'clok'; known are "),
        ("WrongRule", "has wrong fault_rules: 'EWHAT' in a fault rule"),
        ("RuleOfUnknownName", "has the fault rule 'write * #{number} EIO', and must have texts, "),
        ("RulesAsText", "has fault_rules='write * #1 EIO', and must have a list of texts"),
        ("NoFamilies", "has families_left_out=None, and must map each family that it leaves out"),
        ("WithoutActionsInGenerator", "has no actions: its actions() returns none of them"),
        ("RaisingInGenerator", "raises ValueError when the target is made: no server, at {file}:"),
        ("NamedByNumber", "has an action with the name 5, which is no text"),
        (
            "ReadyWithoutFunction",
            "has ready of action 'put', which is True, and must be a function",
        ),
        ("WithoutRecovery", "raises TypeError when the target is made: Can't instantiate abstract"),
        ("no_target", "returns 7, which does not derive from powercut.Target"),
        ("number", "is not callable: 7"),
    ],
)
def test_target_that_cannot_be_made_is_a_mistake_at_its_place(
    module: str, name: str, sentence: str
) -> None:
    sentence = sentence.replace("{file}", f"{module}.py")
    assert refused("run", f"{module}:{name}").startswith(f"Error: {module}:{name} {sentence}")
    Path("pyproject.toml").write_text(
        f"[tool.powercut.targets]\nkv = '{module}:{name}'", encoding="ascii"
    )
    sentence_of_tag = refused("run")
    assert sentence_of_tag.startswith(f"Error: target 'kv': {module}:{name} {sentence}")
    assert sentence_of_tag.endswith(
        f"; it is registered under [tool.powercut.targets] in {Path.cwd()}/pyproject.toml\n"
    )


def test_of_many_entries_the_nearest_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"bug-{number} = 'bugs:bug'" for number in range(30)]
    Path("pyproject.toml").write_text("\n".join(["[tool.powercut.mutants]", *lines]), "ascii")
    assert refused("mutants", "bug-29x").startswith(
        "Error: unknown mutant 'bug-29x'; of 30 that are known, the nearest are bug-29, bug-9, "
    )


def test_target_that_cannot_be_imported_is_a_mistake_at_its_place() -> None:
    Path("pyproject.toml").write_text(
        "[tool.powercut.targets]\nkv = 'crash_tests_gone.kv:Target'", encoding="ascii"
    )
    assert refused("run", "kv") == (
        f"Error: target 'kv': there is no module 'crash_tests_gone' in {Path.cwd()}, nor "
        "installed; change to its directory, or install it; "
        f"it is registered under [tool.powercut.targets] in {Path.cwd()}/pyproject.toml\n"
    )


def test_package_that_hides_a_folder_of_the_project_is_named() -> None:
    Path("oracles").mkdir()
    Path("oracles", "notes.py").write_text("def save(ack): ...\n", encoding="ascii")
    assert refused("explore", "oracles.notes:save") == (
        f"Error: there is no module 'oracles.notes' in {Path.cwd()}, nor installed; "
        f"oracles is {import_module('oracles').__file__}, which hides oracles of "
        "this directory: add an empty file oracles/__init__.py\n"
    )


def test_mistake_in_a_check_of_the_command_line_is_not_one_of_the_registry() -> None:
    Path("pyproject.toml").write_text(
        "[tool.powercut.workloads]\nsave = 'tests.unit.explorer.workloads:save_twice'", "ascii"
    )
    assert refused("explore", "save", "--check", "os:gone") == (
        "Error: module 'os' has no object 'gone'\n"
    )


@pytest.mark.parametrize("command", ["run", "explore", "mutants"])
def test_malformed_table_is_refused_by_every_command(command: str) -> None:
    Path("pyproject.toml").write_text("[tool.powercut]\nsead = 3", encoding="ascii")
    assert "[tool.powercut] has an unknown key 'sead'; known are " in refused(command)


def test_settings_of_the_project_are_defaults_of_the_options(module: str) -> None:
    Path("pyproject.toml").write_text(
        f"[tool.powercut]\nmodel = 'xfs'\nseconds = 0.2\nseed = 9\n"
        f"[tool.powercut.targets]\nkv = '{module}:Good'",
        encoding="ascii",
    )
    result = powercut("run", "-n", "1")
    assert "xfs, seed 9, " in result.stdout.splitlines()[-1]
    options = ("--model", "btrfs", "--seed", "0", "--examples", "1", "-n", "1")
    assert "btrfs, seed 0, " in powercut("run", *options).stdout.splitlines()[-1]


@pytest.mark.parametrize("processes", ["1", "2"])
def test_program_that_uses_an_unmodelled_call_is_named_with_its_place(
    module: str, processes: str
) -> None:
    result = powercut("run", f"{module}:Unmodelled", "--examples", "20", "-n", processes)
    assert result.exit_code == ExitCode.USAGE
    line = TARGET.splitlines().index('        host.mkfifo("/pipe")') + 1
    assert result.stderr == (
        "Error: mkfifo is not modelled by the simulated disk; called at "
        f"{Path.cwd()}/{module}.py:{line} in recover\n"
    )


def test_program_that_leaves_the_simulated_machine_is_named_with_its_place(module: str) -> None:
    result = powercut("run", f"{module}:Escaping", "--examples", "1", "-n", "1")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr.startswith("Error: ")
    assert f"{module}.py" in result.stderr
    assert result.stderr.count("\n") == 1
