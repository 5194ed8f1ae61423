"""Asking for help is quick, because nothing heavy is imported for it."""

from __future__ import annotations

import pytest

from tests.meta.source_tree import run_python

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
    ran = run_python("-c", "from powercut.cli.main import main; main()", "run", "atomic-flie")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("Error: unknown target 'atomic-flie'")


@pytest.mark.parametrize("command", ["run", "mutants"])
def test_command_of_a_missing_extra_says_what_to_install(command: str) -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None; from powercut.cli.main import main; main()"
    )
    ran = run_python("-c", script, command)
    assert ran.returncode == 2
    assert ran.stderr == (
        f"Error: powercut {command} needs hypothesis, which is not installed: "
        "pip install 'powercut[fuzz]'\n"
    )
