"""Text cases: input, a line of dashes, expected output; ``--rewrite-cases`` writes the output.

A case file is a series of cases with blank lines between them. ``#`` begins a comment, which
belongs to the case below it. Read the change of a rewritten file before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

DASHES: Final = "----"


@dataclass(frozen=True)
class Case:
    """One case: the comment lines above it, the input lines and the expected lines."""

    comments: tuple[str, ...]
    given: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def title(self) -> str:
        """The comment as one line; it names the case in reports."""
        return " ".join(line.lstrip("# ") for line in self.comments) or " ".join(self.given)

    def text(self, output: tuple[str, ...]) -> str:
        """Return the case with this output."""
        return "".join(f"{line}\n" for line in (*self.comments, *self.given, DASHES, *output))


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file in their order."""
    for block in path.read_text("utf-8").split("\n\n"):
        lines = block.strip("\n").splitlines()
        body = [line for line in lines if not line.startswith("#")]
        if body:
            comments = tuple(line for line in lines if line.startswith("#"))
            dashes = body.index(DASHES) if DASHES in body else len(body)
            yield Case(comments, tuple(body[:dashes]), tuple(body[dashes + 1 :]))


def check_cases(
    path: Path,
    run: Callable[[Case], tuple[str, ...]],
    subtests: pytest.Subtests,
    *,
    rewrite: bool,
) -> None:
    """Run every case of a file and compare its output, or rewrite the file."""
    cases = list(read_cases(path))
    assert cases, f"{path} has no case"
    outputs = [run(case) for case in cases]
    if rewrite:
        texts = [case.text(output) for case, output in zip(cases, outputs, strict=True)]
        path.write_text("\n".join(texts), "utf-8")
    for case, output in zip(cases, outputs, strict=True):
        with subtests.test(case.title):
            assert rewrite or output == case.expected
