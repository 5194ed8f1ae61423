"""The runtime has no code that only tests call: each public name has a caller, or is documented."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tests.meta.source_tree import ROOT, python_files, tree_of

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

# The names in docs/reference.md are those of the engine.
DOCUMENTED = " ".join(
    path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md") if path.name != "reference.md"
)


class _Name(NamedTuple):
    """A public class, function or method; ``owners``: its file, or its class and their bases."""

    node: Definition
    owners: tuple[str, ...]
    is_method: bool

    def is_in(self, used: set[str]) -> bool:
        """Return whether it is used, maybe as a method of a base class."""
        return any(f"{owner}.{self.node.name}" in used for owner in self.owners)


def _names(path: Path) -> Iterator[_Name]:
    """Yield the public names of a file."""
    for node in tree_of(path).body:
        if not isinstance(node, Definition):
            continue
        if not node.name.startswith("_"):
            yield _Name(node, (path.stem,), is_method=False)
        if isinstance(node, ast.ClassDef):
            bases = (ast.unparse(base).partition("[")[0] for base in node.bases)
            owners = (node.name, *bases)
            methods = (each for each in node.body if isinstance(each, Definition))
            yield from (
                _Name(each, owners, is_method=True)
                for each in methods
                if not each.name.startswith("_")
            )


def _is_override(name: _Name) -> bool:
    """Return whether a class of another package, such as ``click.Group``, calls the method."""
    return name.is_method and any("." in owner for owner in name.owners)


def _is_command(node: Definition) -> bool:
    """Return whether a decorator registers the function, as those of click do."""
    called = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr == "command" for each in called)


def _used(folder: Path) -> set[str]:
    """Return what the runtime uses, as the type checker resolves it: ``owner.name``."""
    command = ["mypy", "--export-ref-info", "--no-sqlite-cache", f"--cache-dir={folder}", "system"]
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)
    files = [each for each in folder.rglob("*.refs.json") if "system" in each.parts]
    assert files
    uses = (use["target"] for each in files for use in json.loads(each.read_text("utf-8")))
    return {".".join(use.split(".")[-2:]) for use in uses}


def test_every_public_name_of_the_runtime_has_a_caller_or_is_documented(tmp_path: Path) -> None:
    trees = [tree_of(path) for path in python_files("system")]
    names = [name for path in python_files("system") for name in _names(path)]
    used = _used(tmp_path)
    # The type checker leaves out the names in annotations.
    named = {each.id for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Name)}
    of_protocols = {
        name.node.name for name in names if "Protocol" in name.owners and name.is_in(used)
    }
    unused = [
        f"{name.owners[0]}.{name.node.name}"
        for name in names
        if not name.is_in(used)
        and name.node.name not in (of_protocols if name.is_method else named)
        and not _is_override(name)
        and not _is_command(name.node)
        and not re.search(rf"`[^`\n]*\b{name.node.name}\b[^`\n]*`", DOCUMENTED)
    ]
    assert unused == [], "\n".join(unused)
