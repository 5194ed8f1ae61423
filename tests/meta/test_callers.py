"""The runtime has no code that only tests call: each public name has a caller, or is documented."""

from __future__ import annotations

import ast
import re

from tests.meta.source_tree import ROOT, name_of, python_files, tree_of

DOCUMENTED = " ".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a decorator registers the function, as those of click do."""
    called = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr == "command" for each in called)


def test_every_public_name_of_the_runtime_has_a_caller_or_is_documented() -> None:
    trees = {name_of(path): tree_of(path) for path in python_files("system")}
    nodes = [(name, node) for name, tree in trees.items() for node in ast.walk(tree)]
    used = {node.id for _, node in nodes if isinstance(node, ast.Name)}
    used |= {node.attr for _, node in nodes if isinstance(node, ast.Attribute)}
    unused = [
        f"{name}: {node.name}"
        for name, node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        and node.name not in used
        and not _is_command(node)
        and not re.search(rf"`[^`\n]*\b{node.name}\b[^`\n]*`", DOCUMENTED)
    ]
    assert unused == []
