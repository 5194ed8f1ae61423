"""Ways to call the command line, and a project to call it in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner, Result

from powercut.cli.exit_code import ExitCode
from powercut.cli.main import cli
from tests.unit.fuzz.project import PROJECT

SAVED_FILE: Final = PROJECT.config.targets["saved-file"]
CARELESS: Final = "tests.unit.fuzz.broken:careless"
"""The same target with a bug that campaigns find at once."""


DIRECTORIES: Final = """
from powercut import ActionKind, DiskTarget

class Directories(DiskTarget):
    def actions(self):
        return [ActionKind("put", 1, self.put)]

    def recover(self, process):
        self.process = process

    def put(self, arguments):
        try:
            self.process.mkdir(f"/{len(self.process.listdir('/'))}")
        except OSError:
            return "refused"
        return "stored"
"""
"""The beginning of a module of targets: one makes a directory in each action, and loses nothing."""


def powercut(*arguments: str) -> Result:
    """Run a command in this process, on a terminal of 80 columns that is none."""
    return CliRunner().invoke(cli, arguments, prog_name="powercut", env={"COLUMNS": "80"})


def refusal(module: str, source: str) -> str:
    """Return the sentence with which a campaign of the target ``Wrong`` of a module is refused."""
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut("run", f"{module}:Wrong", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    return result.stderr


def json_of(result: Result) -> dict[str, Any]:
    """Return the object that a command with ``--json -`` printed."""
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def completion(words: str) -> dict[str, str]:
    """The variables with which bash asks for completions of the last word."""
    last = str(len(words.split()) - 1)
    return {"_POWERCUT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": last}


def write_project(folder: Path, saved_file: str = SAVED_FILE) -> None:
    """Register the targets, workloads and mutants of the engine's own tests in ``folder``.

    ``saved_file`` is the import string of the target that has its tag.
    """
    config = PROJECT.config
    targets = {**config.targets, "saved-file": saved_file}
    tables = {"targets": targets, "workloads": config.workloads, "mutants": config.mutants}
    lines: list[str] = []
    for table, entries in tables.items():
        lines += [
            f"[tool.powercut.{table}]",
            *(f'{tag} = "{name}"' for tag, name in entries.items()),
        ]
    (folder / "pyproject.toml").write_text("\n".join(lines), encoding="ascii")
