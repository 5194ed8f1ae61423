"""Ways to call the command line, and a bug that its campaigns find at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from crash_tests.targets.atomic_file import AtomicFileTarget
from powercut.cli.main import cli
from system.ports import FileSystem, Ids, OpenMode
from system.storage.transfer import write_all
from tests.registry import REGISTRY


def powercut(*arguments: str) -> Result:
    """Run a command in this process, on a terminal of 80 columns that is none."""
    return CliRunner().invoke(cli, arguments, prog_name="powercut", env={"COLUMNS": "80"})


def json_of(result: Result) -> dict[str, Any]:
    """Return the object that a command with ``--json -`` printed."""
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def careless(files: FileSystem, path: str, data: bytes, ids: Ids) -> None:
    """Replace a file without any barrier."""
    temporary = f"{path}.tmp.{ids.random_hex(8)}"
    file = files.open(temporary, OpenMode.CREATE)
    write_all(file, data, 0)
    file.close()
    files.replace(temporary, path)


def careless_file() -> AtomicFileTarget:
    """The atomic file machine on ``careless``."""
    return AtomicFileTarget("atomic-file", careless)


def raising_file() -> AtomicFileTarget:
    """The atomic file machine on a writer that raises what no disk does."""

    def raising(_files: FileSystem, _path: str, _data: bytes, _ids: Ids) -> None:
        raise ZeroDivisionError("the writer cannot count")

    return AtomicFileTarget("atomic-file", raising)


def write_project(folder: Path, **settings: str) -> None:
    """Register the targets and mutants of this repository in ``folder``.

    ``settings`` is the import string of ``atomic_file`` to use instead, and lines of
    ``[tool.powercut]``.
    """
    targets = dict(REGISTRY.config.targets)
    targets["atomic-file"] = settings.pop("atomic_file", targets["atomic-file"])
    lines = ["[tool.powercut]", *(f"{key} = {value}" for key, value in settings.items())]
    for table, entries in (("targets", targets), ("mutants", REGISTRY.config.mutants)):
        lines += [
            f"[tool.powercut.{table}]",
            *(f'{tag} = "{name}"' for tag, name in entries.items()),
        ]
    (folder / "pyproject.toml").write_text("\n".join(lines), encoding="ascii")
