"""The pages of ``examples/`` about executables print the verdicts of their commands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT
from tests.sample import in_the_gate
from tests.unit.fuse.recorded import needs_mounts

pytestmark = needs_mounts

PAGES = ("mv", "sed", "git", "sqlite", "etcd", "redis", "postgresql", "mariadb", "databases")
NEEDS = re.compile(r"^Needs: (.*)$", re.MULTILINE)
BLOCK = re.compile(r"```console\n\$ (.*?)\n(.*?)```", re.DOTALL)
# The packages that a page needs are those of this Python.
PATH = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
OMITTED = "..."
ANYTHING = "…"


def blocks() -> Iterator[tuple[str, str, str]]:
    """The console blocks of all pages, each with its page: the command, and the printed lines."""
    for name in PAGES:
        for found in BLOCK.finditer((ROOT / "examples" / f"{name}.md").read_text("utf-8")):
            yield name, found[1], found[2]


def missing(page: str) -> list[str]:
    """The programs and packages that a page needs, and that are not installed."""
    needs = NEEDS.search((ROOT / "examples" / f"{page}.md").read_text("utf-8"))
    assert needs is not None
    names = needs[1].split(", ")
    return [name for name in names if shutil.which(name) is None and find_spec(name) is None]


def pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, line.split(ANYTHING))))


# In the gate, the short ones, and one of SQLite.
@pytest.mark.parametrize(
    ("page", "command", "printed"),
    in_the_gate(blocks(), lambda block: block[0] in {"mv", "sed"} or "DELETE FULL" in block[1]),
    ids=[f"{page}-{number}" for number, (page, _, _) in enumerate(blocks())],
)
def test_a_page_prints_the_verdict(page: str, command: str, printed: str, tmp_path: Path) -> None:
    if names := missing(page):
        pytest.skip(f"{' and '.join(names)} not installed")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = command.replace("powercut", f"{sys.executable} -m powercut", 1)
    result = subprocess.run(
        ["sh", "-c", script],
        check=False,
        cwd=tmp_path,
        env={"PATH": PATH, "PYTHONPATH": str(ROOT), "HOME": "/"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = iter(result.stdout.splitlines())
    for line in printed.splitlines():
        if line != OMITTED:
            found = any(pattern(line).fullmatch(each.rstrip()) for each in lines)
            assert found, f"{line!r} is not in its place:\n{result.stdout}{result.stderr}"
