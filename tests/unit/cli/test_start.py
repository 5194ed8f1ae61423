"""Help and completion import little; a missing extra is named; the exit code reaches the shell."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from click import Context
from click.testing import CliRunner

from powercut.cli.main import cli
from tests.meta.source_tree import ROOT, run_python
from tests.unit.cli.command_line import completion, write_project

SCRIPT = """
import sys
from powercut.cli.main import cli
try:
    cli(sys.argv[1:])
except SystemExit as left:
    heavy = [name for name in ("apsw", "faker", "hypothesis", "rich", "sim") if name in sys.modules]
    print(left.code, *heavy)
"""


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    ran = run_python("-c", SCRIPT, *arguments)
    assert "Usage: " in ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == ("0" if arguments else "2")


def test_installed_script_ends_with_the_exit_code() -> None:
    ran = run_python("-c", "from powercut.cli.main import main; main()", "run", "saved-flie")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("Error: unknown target 'saved-flie'")


def test_a_current_directory_that_was_removed_is_one_sentence(tmp_path: Path) -> None:
    script = "import os; os.rmdir(os.getcwd()); from powercut.cli.main import main; main()"
    ran = run_python("-c", script, "explore", "settings:save", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == (
        "Error: the current directory was removed; change to another"
    )


def test_no_null_device_is_needed_if_the_standard_streams_are_open() -> None:
    script = "import os; os.devnull = '/missing'; from powercut.cli.main import main; main()"
    assert run_python("-c", script, "--version").returncode == 0


ALL_HELP = """
import sys
sys.modules["hypothesis"] = None
from powercut.cli.main import cli
for name in cli.list_commands(None):
    cli([name, "--help"], "powercut", standalone_mode=False)
"""


def without_hypothesis(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    script = (
        "import sys; sys.modules['hypothesis'] = None; from powercut.cli.main import main; main()"
    )
    return run_python("-c", script, *arguments, cwd=cwd)


def test_mutants_need_no_hypothesis(tmp_path: Path) -> None:
    write_project(tmp_path)
    ran = without_hypothesis("mutants", "no-fsync", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_the_help_of_every_command_needs_no_hypothesis() -> None:
    ran = run_python("-c", ALL_HELP)
    names = cli.list_commands(Context(cli))
    assert re.findall(r"^Usage: powercut (\w+) ", ran.stdout, re.MULTILINE) == names, ran.stderr


def test_a_campaign_needs_no_hypothesis(tmp_path: Path) -> None:
    target = ("run", "tests.unit.fuzz.broken:undurable", "--root", str(tmp_path), "-n", "1")
    ran = without_hypothesis(*target, "--examples", "3", "--steps", "30")
    assert ran.returncode == 1, ran.stderr
    (path,) = tmp_path.glob(".powercut/failures/*.json")
    assert len(json.loads(path.read_text())["steps"]) <= 3


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("powercut re", ["replay", "record"]),
        ("powercut run f", ["frequent-file"]),
        ("powercut explore save", ["save", "save-without-fsync"]),
        ("powercut mutants no-d", ["no-directory-fsync"]),
        ("powercut run --model ext4-", ["ext4-journal", "ext4-ordered", "ext4-writeback"]),
        ("powercut explore --model a", ["all"]),
        ("powercut run --model scc --model xfs --profile n", ["nightly"]),
        ("powercut run --profile n", ["nightly"]),
        ("powercut replay --target crash", ["crash-free"]),
        ("powercut replay --target save-w", ["save-without-fsync"]),
    ],
)
def test_values_are_completed_from_the_registry(
    words: str, completed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(cli, prog_name="powercut", env=completion(words))
    assert ran.stdout.splitlines() == [f"plain,{value}" for value in completed], ran.stderr


def test_tags_of_a_malformed_project_are_not_completed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.powercut]\nsead = 1", "utf-8")
    ran = run_python("-m", "powercut", environment=completion("powercut run e"), cwd=tmp_path)
    assert (ran.stdout.strip(), ran.stderr) == ("", "")


IGNORED_INTERRUPT = """
import os, signal
import powercut.cli.main as line

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

def command(prog_name):
    try:
        Dropped()
        signal.pause()
    except KeyboardInterrupt:
        print("interrupted")

line.cli = command
line.main()
"""


def test_an_interrupt_that_python_ignores_is_repeated() -> None:
    ran = run_python("-c", IGNORED_INTERRUPT)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("interrupted\n", "", 0)
