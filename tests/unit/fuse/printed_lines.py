"""Commands of a page, and the lines that they must print."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.meta.source_tree import ROOT

# The packages that a page needs are those of this Python.
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
_BLOCK = re.compile(r"```console\n\$ (.*?)\n(.*?)```", re.DOTALL)
_OMITTED = "..."
_ANYTHING = "…"


def blocks_of(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the console blocks of a page: the command, and the printed lines."""
    for found in _BLOCK.finditer(page.read_text("utf-8")):
        yield found[1], found[2]


def assert_printed(command: str, printed: str, folder: Path) -> None:
    """Run a command of ``powercut`` in ``folder``, and look for the printed lines in order."""
    script = command.replace("powercut", f"{sys.executable} -m powercut", 1)
    result = subprocess.run(
        ["sh", "-c", script],
        check=False,
        cwd=folder,
        env={"PATH": PATH, "PYTHONPATH": str(ROOT), "HOME": "/"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = iter(result.stdout.splitlines())
    for line in printed.splitlines():
        if line != _OMITTED:
            found = any(_pattern(line).fullmatch(each.rstrip()) for each in lines)
            assert found, f"{line!r} is not in its place:\n{result.stdout}{result.stderr}"


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split(_ANYTHING))))
