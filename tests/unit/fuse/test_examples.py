"""The pages about executables print the verdicts of their commands."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT
from tests.sample import in_the_gate
from tests.unit.fuse.printed_lines import PATH, assert_printed, blocks_of
from tests.unit.fuse.recorded import needs_mounts

pytestmark = needs_mounts

PAGES = (
    "mv", "sed", "ssh-keygen", "git", "sqlite", "etcd", "redis", "nats", "postgresql", "mariadb",
    "databases",
)  # fmt: skip
NEEDS = re.compile(r"^Needs: (.*)$", re.MULTILINE)
HOW_TO = ROOT / "docs" / "how-to" / "any-program.md"
CHECK = re.compile(r"```sh\n(# check.sh\n.*?)```", re.DOTALL)


def blocks() -> Iterator[tuple[str, str, str]]:
    """The console blocks of all pages, each with its page: the command, and the printed lines."""
    for name in PAGES:
        for command, printed in blocks_of(ROOT / "examples" / f"{name}.md"):
            yield name, command, printed


def missing(page: str) -> list[str]:
    """The programs and packages that a page needs, and that are not installed."""
    needs = NEEDS.search((ROOT / "examples" / f"{page}.md").read_text("utf-8"))
    assert needs is not None
    names = needs[1].split(", ")
    return [
        name for name in names if shutil.which(name, path=PATH) is None and find_spec(name) is None
    ]


# In the gate, the short ones, and one of SQLite.
@pytest.mark.parametrize(
    ("page", "command", "printed"),
    in_the_gate(
        blocks(), lambda block: block[0] in {"mv", "sed", "ssh-keygen"} or "DELETE FULL" in block[1]
    ),
    ids=[f"{page}-{number}" for number, (page, _, _) in enumerate(blocks())],
)
def test_a_page_prints_the_verdict(page: str, command: str, printed: str, tmp_path: Path) -> None:
    if names := missing(page):
        pytest.skip(f"{' and '.join(names)} not installed")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    assert_printed(command, printed, tmp_path)


def test_the_check_of_the_how_to_page_finds_the_lost_line(tmp_path: Path) -> None:
    check = CHECK.search(HOW_TO.read_text("utf-8"))
    assert check is not None
    (tmp_path / "check.sh").write_text(check[1], "utf-8")
    [(command, printed)] = [each for each in blocks_of(HOW_TO) if "--check" in each[0]]
    assert_printed(command, printed, tmp_path)
