"""A user's mistake is one clear sentence, exit code 2, and nothing written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.reproducer import FORMAT
from tests.unit.cli.command_line import powercut

REPRODUCER = {
    "format": FORMAT,
    "fingerprint": "00000000",
    "target": "saved-file",
    "model": "posix",
    "property": "LostAck",
    "statement": "gone",
    "steps": [],
    "faults": [],
    "trace": "",
    "versions": {},
}


PROJECT = """
[tool.powercut.targets]
saved-file = "tests.unit.fuzz.saved_file:saved_file"
frequent-file = "tests.unit.fuzz.saved_file:frequent_file"

[tool.powercut.workloads]
save = "tests.unit.explorer.workloads:save_twice"
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # Commands extend it by this folder, and some tests write modules with standard names.
    monkeypatch.setattr("sys.path", [*sys.path])
    Path("pyproject.toml").write_text(PROJECT, encoding="ascii")
    return tmp_path


@pytest.fixture(autouse=True)
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import leaves no file in the directory, here and in the processes that are started."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def refused(*arguments: str) -> str:
    """The sentence with which a command refuses; it must leave the directory as it is."""
    before = sorted(Path().rglob("*"))
    result = powercut(*arguments)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert result.stdout == ""
    assert sorted(Path().rglob("*")) == before
    sentence = result.stderr.removesuffix("\n")
    assert sentence.startswith("Error: ")
    assert "\n" not in sentence
    return sentence.removeprefix("Error: ")


def test_unknown_target_names_the_known_ones() -> None:
    assert refused("run", "saved-flie") == (
        "unknown target 'saved-flie'; known are saved-file, frequent-file; register it under "
        f"[tool.powercut.targets] in {Path.cwd()}/pyproject.toml, or name it as module:object"
    )


@pytest.mark.parametrize("command", ["run", "explore"])
def test_unknown_model_names_the_known_ones(command: str) -> None:
    assert refused(command, "--model", "ntfs") == (
        "unknown persistence model 'ntfs'; known are "
        "scc, ext4-journal, ext4, ext4-ordered, ext4-writeback, xfs, btrfs, posix"
    )


@pytest.mark.parametrize("number", ["inf", "nan", "1e10", "0", "-1"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--seconds"),
        ("explore", "--seconds"),
        ("explore", "--timeout"),
        ("mutants", "--seconds"),
        ("try", "--timeout"),
        ("calibrate", "--minutes"),
        ("confirm", "--timeout"),
    ],
    ids=" ".join,
)
def test_a_time_that_never_ends_or_never_begins_is_refused(
    arguments: tuple[str, str], number: str
) -> None:
    result = powercut(*arguments, number)
    assert result.exit_code == ExitCode.USAGE, result.output
    sentence = result.stderr.splitlines()[-1]
    assert sentence.startswith(f"Error: Invalid value for '{arguments[1]}': ")
    assert sentence.endswith(" is not a number above 0, at most 1000000000.")


def test_unknown_profile_names_the_known_ones() -> None:
    assert refused("run", "--profile", "weekly") == (
        "unknown settings profile 'weekly'; known are default, ci, nightly, torture"
    )


def test_malformed_fault_plan_names_the_piece_that_is_wrong() -> None:
    assert "'EWHAT'" in refused("run", "--faults", "write * #1 EWHAT")


def test_fault_that_its_call_cannot_have_is_refused_with_those_that_it_can() -> None:
    assert refused("run", "--faults", "unlink * #1 ENOSPC") == (
        "fault rule 'unlink * #1 ENOSPC': effect 'ENOSPC' fits create, write, resize, link, "
        "rename, fsync, close; unlink takes EIO, EROFS"
    )


def test_fault_plan_for_targets_without_faults_is_refused() -> None:
    crash_free = "tests.unit.fuzz.broken:CrashFree"
    assert refused("run", crash_free, "--faults", "write * #1 EIO").startswith(
        "--faults 'write * #1 EIO' reaches no target: "
    )


def test_root_that_is_a_file_is_refused_before_the_campaign() -> None:
    Path("root").write_text("a file", encoding="ascii")
    assert refused("run", "--root", "root").startswith(
        "cannot write to root/.powercut/failures: Not a directory"
    )


def test_root_on_a_file_system_without_files_is_refused() -> None:
    assert "cannot write to /proc/.powercut/failures" in refused("run", "--root", "/proc")


@pytest.mark.parametrize("command", ["run", "explore"])
def test_json_that_cannot_be_written_is_refused_before_the_work(command: str) -> None:
    assert refused(command, "--json", "nowhere/out.json") == (
        "cannot write --json nowhere/out.json: there is no directory nowhere"
    )
    assert refused(command, "--json", ".") == "cannot write --json .: it is a directory"


def test_unknown_workload_names_the_known_ones() -> None:
    sentence = refused("explore", "sav")
    assert sentence.startswith("unknown workload 'sav'; known are save; register it")


def test_check_without_a_workload_is_refused() -> None:
    sentence = refused("explore", "--check", "store:check")
    assert sentence == "--check store:check needs the workload that it checks"


def test_module_that_is_not_there_is_named(project: Path) -> None:
    assert refused("explore", "no_such_store:workload") == (
        f"there is no module 'no_such_store' in {project}, nor installed; "
        "change to its directory, or install it"
    )


@pytest.mark.parametrize(("name", "hiding"), [("copy", "copy.py"), ("sys", "a part of Python")])
def test_file_with_the_name_of_a_standard_module_is_to_be_renamed(name: str, hiding: str) -> None:
    assert refused("explore", f"{name}:save") == f"module '{name}' has no object 'save'"
    Path(f"{name}.py").write_text("def save(ack): pass", encoding="ascii")
    sentence = refused("explore", f"{name}:save")
    assert f"{hiding}, which hides {name}.py of this directory" in sentence


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("", "module '{name}' has no object 'workload'"),
        ("workload = 3", "{name}:workload is not callable: 3"),
        ("def workload(disk, ack): pass\nworkload.check = 3", "the check of {name}:workload is"),
        (
            "def workload(disk, ack): pass\nworkload.limits = 3",
            "the limits of {name}:workload are 3, and no powercut.Limits",
        ),
        ("1 / 0", "module '{name}' cannot be imported: ZeroDivisionError: division by zero"),
        ("import nothing_such", "module '{name}' cannot be imported: ModuleNotFoundError"),
        ("raise SystemExit(4)", "module '{name}' exits when it is imported: 4"),
        ("def workload(disk, ack): 1 / 0", "{name}:workload: the workload failed before any"),
        (
            "def workload(disk, ack): disk.mkdir('/d'); ack(7)",
            "{name}:workload: the default check needs mappings",
        ),
    ],
)
def test_mistake_in_a_workload_is_one_sentence(
    source: str, sentence: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"wrong_store_{abs(request.node.callspec.indices['source'])}"
    monkeypatch.syspath_prepend(".")
    Path(f"{name}.py").write_text(source, encoding="ascii")
    result = powercut("explore", f"{name}:workload")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr.startswith(f"Error: {sentence.format(name=name)}")
    assert result.stderr.count("\n") == 1


TARGET = """
from tests.unit.fuzz.saved_file import SavedFileTarget, save

class Target(SavedFileTarget):
    def {method}(self, *_):
        raise ValueError("no server")

def target():
    return Target("own", save)
"""


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (
            "recover",
            (
                "UnreadableAfterCrash: recovery fails, and no fault is in force "
                "(raised=\"ValueError('no server')\")"
            ),
        ),
        ("check_recovered", "ValueError: no server"),
    ],
)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_target_that_cannot_start_is_refused(
    method: str, sentence: str, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"target_that_fails_in_{method}"
    monkeypatch.syspath_prepend(".")
    Path(f"{name}.py").write_text(TARGET.format(method=method), encoding="ascii")
    assert refused("run", f"{name}:target", "--examples", "2", "-n", processes) == (
        f"target '{name}:target' fails at its first start, before any crash: {sentence}, "
        f"at {name}.py:6 in Target.{method}"
    )


ARGUMENTS = """
from math import inf, nan
from powercut import ActionKind
from tests.unit.fuzz.saved_file import SavedFileTarget, save

class Target(SavedFileTarget):
    def actions(self):
        return [ActionKind("put", 1, str, self.chosen)]

    def chosen(self, choices):
        return {arguments}

def target():
    return Target("own", save)
"""


@pytest.mark.parametrize(
    ("number", "arguments"),
    [
        (1, "{'value': b'a'}"),
        (2, "{'value': [{1: 2}]}"),
        (3, "{'value': (1, {2})}"),
        (4, "None"),
        (5, "{'value': nan}"),
        (6, "{'value': [-inf]}"),
    ],
)
def test_target_whose_arguments_no_reproducer_can_keep_is_refused(
    number: int, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"target_with_arguments_{number}"
    monkeypatch.syspath_prepend(".")
    Path(f"{name}.py").write_text(ARGUMENTS.replace("{arguments}", arguments), encoding="ascii")
    assert refused("run", f"{name}:target", "--examples", "2", "-n", "1") == (
        f"the arguments of action 'put' are {arguments}, and must be a dict of JSON data, which a "
        "reproducer can keep: None, bool, int, finite float, str, lists, and dicts with strings as "
        f"keys; see {name}.py:10, Target.chosen"
    )


IDLE = """
from powercut import ActionKind
from tests.unit.fuzz.saved_file import SavedFileTarget, save

def target():
    made = SavedFileTarget("own", save)
    made.crash_free = True
    made.actions = lambda: [ActionKind("put", 1, str, ready=lambda: False)]
    return made
"""


def test_target_without_a_possible_action_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(".")
    Path("idle_target.py").write_text(IDLE, encoding="ascii")
    assert refused("run", "idle_target:target", "--examples", "2", "-n", "1") == (
        "no action is possible; one of put must be ready at any time"
    )


def test_file_in_place_of_a_module_is_refused_with_the_module(project: Path) -> None:
    Path("store.py").touch()
    assert refused("explore", "store.py:save") == (
        f"there is no module 'store.py' in {project}, nor installed; name the module, not its "
        "file: store:save"
    )


def test_import_string_without_an_object_is_refused() -> None:
    assert refused("explore", "store:") == ("'store:' is not module:object, such as store:workload")


def test_reproducer_that_is_missing_or_unreadable_is_named() -> None:
    assert refused("replay", "gone.json") == (
        "cannot read reproducer gone.json: No such file or directory"
    )
    assert refused("replay", ".") == "cannot read reproducer .: Is a directory"
    Path("cut.json").write_text('{"format": 1, "fing', encoding="ascii")
    assert refused("replay", "cut.json") == (
        "cut.json is not a reproducer: it is not JSON, or cut off"
    )


def test_newer_reproducer_is_refused_with_the_remedy() -> None:
    Path("new.json").write_text(json.dumps({"format": FORMAT + 1}), encoding="ascii")
    assert refused("replay", "new.json") == (
        f"new.json has format={FORMAT + 1}, this powercut reads up to {FORMAT}; "
        "replay it with the powercut that wrote it, or a newer one"
    )


def _step(name: str, **arguments: object) -> dict[str, object]:
    return {
        "action": {"name": name, "arguments": arguments},
        "choices": [],
        "crashes": [],
        "outcome": "",
    }


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"steps": None}, "f.json is a malformed reproducer: steps is not a list: None"),
        ({"steps": [7]}, "f.json is a malformed reproducer: step 1: a step is not an object: 7"),
        (
            {"target": "mail"},
            (
                "f.json is of the target 'mail', which is not registered (registered: saved-file, "
                "frequent-file); register it under [tool.powercut.targets], or give --target "
            ),
        ),
        (
            {"target": "mail:1"},
            (
                "'mail:1' is not module:object, such as store:workload; f.json is of "
                "mail:1: if it has moved, give --target module:object"
            ),
        ),
        ({"model": "ntfs"}, "unknown persistence model 'ntfs'; known are "),
        (
            {"steps": [_step("fault_on", plan="write * #1 EWHAT")]},
            "f.json is a malformed reproducer: step 1: 'EWHAT' in a fault rule is no effect",
        ),
        (
            {"steps": [_step("crash_and_recover", action={"name": "x", "arguments": {}})]},
            "f.json is a malformed reproducer: step 1: it has no 'crashes'",
        ),
    ],
)
def test_malformed_reproducer_names_its_mistake(changed: dict[str, object], sentence: str) -> None:
    Path("f.json").write_text(json.dumps(REPRODUCER | changed), encoding="ascii")
    assert refused("replay", "f.json").startswith(sentence)


@pytest.mark.parametrize(
    "arguments", [("run", "--examples", "0"), ("run", "-n", "x"), ("fly",), ("run", "--wat")]
)
def test_impossible_options_are_refused(arguments: tuple[str, ...]) -> None:
    result = powercut(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert "Error: " in result.stderr
    assert list(Path().iterdir()) == [Path("pyproject.toml")]
