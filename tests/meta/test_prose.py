"""The rules of prose, as rates that stay below their limits, and names without removed words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.meta.prose import LIMITS, findings, passages, rates
from tests.meta.removed_words import removed_words, words_of
from tests.meta.source_tree import PACKAGES, ROOT, python_files

ROW = re.compile(r"\b[FSY]-(?:[a-z]+-)?\d+\b|\b[BCIRY]\d{1,2}\b")
"""A row of a table of rules or of bugs."""


@pytest.mark.parametrize("package", PACKAGES)
def test_prose_of_a_package_is_within_its_limits(package: str) -> None:
    found = rates(list(python_files(package)))
    assert {name: rate for name, rate in found.items() if rate > LIMITS[name]} == {}


@pytest.mark.parametrize(
    ("sentence", "pattern"),
    [
        ("What is left goes to the next reader.", "noun clause"),
        ("Return what the disk has kept.", "noun clause"),
        ("Nobody reads it.", "nobody"),
        ("Whoever opens it reads it.", "nobody"),
        ("The caller is told of it.", "tell"),
        ("It belongs to who opened it.", "who"),
    ],
)
def test_a_sentence_against_the_rules_is_counted(
    sentence: str, pattern: str, tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(f'"""{sentence}"""\n# {sentence}\n', "utf-8")
    assert [(name, line) for name, line, _ in findings(path)] == [(pattern, 1), (pattern, 2)]


def test_code_in_a_docstring_is_not_prose(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Call ``tell()``, ``what is`` and the man who knows."""\n', "utf-8")
    assert list(findings(path)) == []


def cited_rows(path: Path) -> set[str]:
    """Return the rows that the docstrings and comments of a file cite."""
    return {row for passage in passages(path) for row in ROW.findall(passage.text)}


def test_every_row_that_a_comment_cites_is_in_the_documentation() -> None:
    documented = {
        row
        for page in (ROOT / "docs").rglob("*.md")
        for row in ROW.findall(page.read_text("utf-8"))
    }
    # Most files hold no other row even in their code, and are not parsed.
    others = {
        path: set(ROW.findall(path.read_text("utf-8"))) - documented for path in python_files()
    }
    cited = {path.name: cited_rows(path) - documented for path, rows in others.items() if rows}
    assert {name: rows for name, rows in cited.items() if rows} == {}


def test_a_cited_row_is_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""R99, Y-open-3 (F-12) and UTF-8 in 0xB2."""\n', "utf-8")
    assert cited_rows(path) == {"R99", "Y-open-3", "F-12"}


def test_no_name_contains_a_removed_word() -> None:
    assert [str(found) for path in python_files() for found in removed_words(path)] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("told_turns", ["told", "turns"]),
        ("ToldTurns", ["told", "turns"]),
        ("_HTTPHandle2", ["http", "handle"]),
        ("SPECIMENS", ["specimens"]),
    ],
)
def test_names_are_split_into_words(name: str, words: list[str]) -> None:
    assert words_of(name) == words
