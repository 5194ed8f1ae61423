"""The prose of docstrings and comments, counted.

``python -m tests.meta.prose [PATH...]`` prints every place that the rules of prose speak of,
and how often each occurs per 1,000 words.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.meta.source_tree import ROOT, statements_of

PATTERNS = {
    "noun clause": re.compile(
        r"\b[Ww]hat (?:is|was|are|were|the|a|an|it|they|has|had|can|could|may|must|does|did|of)\b"
    ),
    "nobody": re.compile(r"\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever|[Nn]o one|[Ss]omeone)\b"),
    "tell": re.compile(r"\b(?:[Uu]n)?(?:[Tt]old|[Tt]ells?|[Tt]elling)\b"),
    "who": re.compile(
        r"(?:^|[.,;:(]\s|\b(?:for|to|by|of|and|or|is|from|with|than|says?|knows?|asks?|on)\s)"
        r"[Ww]ho\b"
    ),
}
LIMITS = {"noun clause": 1.5, "nobody": 0.1, "tell": 0.3, "who": 0.3}
"""How often each may occur per 1,000 words."""

_CODE = re.compile(r"``[^`]*``")


class Passage(NamedTuple):
    """A docstring or a comment, and the line where it begins."""

    line: int
    text: str


def passages(path: Path) -> Iterator[Passage]:
    """Yield the docstrings, attribute docstrings and comments of one file, without code spans."""
    source = path.read_text(encoding="utf-8")
    for node in statements_of(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield Passage(node.lineno, _CODE.sub("X", node.value.value))
    if "#" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Passage(token.start[0], _CODE.sub("X", token.string.lstrip("# ")))


def findings(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the name of a pattern, the line, and the words around it."""
    for passage in passages(path):
        for name, pattern in PATTERNS.items():
            for found in pattern.finditer(passage.text):
                before = passage.text[max(0, found.start() - 30) : found.end() + 40]
                yield name, passage.line + passage.text[: found.start()].count("\n"), before


def rates(paths: list[Path]) -> dict[str, float]:
    """Return how often each pattern occurs per 1,000 words of these files."""
    texts = [passage.text for path in paths for passage in passages(path)]
    words = sum(len(text.split()) for text in texts)
    counts = {name: sum(len(p.findall(text)) for text in texts) for name, p in PATTERNS.items()}
    return {name: round(1000 * count / max(1, words), 2) for name, count in counts.items()}


def main(arguments: list[str]) -> None:
    """Print the findings below the given paths, then the rates."""
    roots = [ROOT / argument for argument in arguments or ["."]]
    paths = [
        path
        for root in roots
        for path in ([root] if root.is_file() else sorted(root.rglob("*.py")))
        if ".venv" not in path.parts
    ]
    for path in paths:
        for name, line, text in findings(path):
            shown = " ".join(text.split())
            sys.stdout.write(f"{path.relative_to(ROOT)}:{line}: {name}: {shown}\n")
    sys.stdout.write(f"{rates(paths)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
