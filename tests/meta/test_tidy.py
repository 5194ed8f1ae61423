"""Limits on the length of files and functions, and on exceptions to lint rules."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.source_tree import (
    PACKAGES,
    ROOT,
    name_of,
    python_files,
    statements_of,
    text_files,
    tree_of,
)

FILE_LINES = 400
FUNCTION_LINES = 60

# Exceptions to mypy's and ruff's rules in the whole tree. Each has its reason beside it.
# A change that needs fewer lowers the number; one that needs more has to defend it here.
TYPE_IGNORES = 2
LINT_IGNORES = 12

ASSIGNED = re.compile(r"^(\w+) *[:=]", re.MULTILINE)
EXCEPTION = re.compile(r"#\s*(?P<kind>type:\s*ignore|noqa)(?P<codes>\[[^\]]*\]|:[\sA-Z0-9,]*)?")


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a file that may be exceptions; only such a file is tokenized."""
    source = path.read_text(encoding="utf-8")
    if not EXCEPTION.search(source):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def exceptions(kind: str) -> list[str]:
    return [
        f"{name_of(path)}: {comment}"
        for path in python_files()
        for comment in comments(path)
        for found in EXCEPTION.finditer(comment)
        if found["kind"].startswith(kind)
    ]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in statements_of(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_every_package_is_checked() -> None:
    assert {"sim", "powercut", "tests"} <= {
        path.relative_to(ROOT).parts[0] for path in python_files()
    }
    assert {"sim", "faults", "oracles", "system", "powercut", "crash_tests"} < set(PACKAGES)


def test_no_file_is_longer_than_400_lines() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in python_files()}
    assert {name: n for name, n in lengths.items() if n > FILE_LINES} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    lengths = {
        f"{name_of(path)}:{node.lineno} {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in python_files()
        for node in functions(path)
    }
    assert {name: n for name, n in lengths.items() if n > FUNCTION_LINES} == {}


@pytest.mark.parametrize(
    ("kind", "allowed"), [("type", TYPE_IGNORES), ("noqa", LINT_IGNORES)], ids=["mypy", "ruff"]
)
def test_exceptions_to_the_rules_do_not_grow_in_number(kind: str, allowed: int) -> None:
    found = exceptions(kind)
    assert len(found) <= allowed, "\n".join(found)


def test_every_exception_names_its_rule_and_has_a_reason_beside_it() -> None:
    bare = [
        f"{name_of(path)}: {comment}"
        for path in python_files()
        for comment in comments(path)
        for found in EXCEPTION.finditer(comment)
        if not found["codes"] or not re.search(r"\w", comment[found.end() :])
    ]
    assert bare == []


def test_every_module_has_a_docstring() -> None:
    # Only a file that begins in another way is parsed.
    others = [path for path in python_files() if path.read_text("utf-8")[:3] != '"""']
    undocumented = [
        name_of(path)
        for path in others
        if path.read_text("utf-8").strip() and not ast.get_docstring(tree_of(path))
    ]
    assert undocumented == []


def test_no_module_gives_a_constant_two_values() -> None:
    # Only a file with two lines that may do so is parsed.
    suspects = [
        path
        for path in python_files()
        if max(Counter(ASSIGNED.findall(path.read_text("utf-8"))).values(), default=0) > 1
    ]
    twice = [
        f"{name_of(path)}: {name}"
        for path in suspects
        for name, number in Counter(
            target.id
            for node in tree_of(path).body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        ).items()
        if number > 1
    ]
    assert twice == []


def test_package_init_files_define_nothing() -> None:
    defining = [
        f"{name_of(path)}: {node.name}"
        for path in python_files("sim", "faults", "oracles", "system", "powercut", "crash_tests")
        if path.name == "__init__.py"
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("__")
    ]
    assert defining == []


def test_no_file_contains_the_path_of_this_checkout() -> None:
    if not (ROOT / ".git").exists() or len(ROOT.parts) < 3:
        pytest.skip(f"no git checkout, or its path is too short to tell: root={ROOT}")
    place = re.compile(rb"(?<![\w.])" + re.escape(str(ROOT)).encode() + rb"(?!\w)")
    naming = [name_of(path) for path in text_files() if place.search(path.read_bytes())]
    assert naming == []
