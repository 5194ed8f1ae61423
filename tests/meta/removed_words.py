"""The words that no name of ours contains any more, and where the old use stays right.

``python -m tests.meta.removed_words [PATH...]`` prints every name that contains one.
"""

from __future__ import annotations

import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.meta.source_tree import ROOT, python_files

REMOVED = {
    "birth": "creation",
    "born": "new",
    "bury": "dead letter",
    "calm": "unobserved or crash free",
    "fact": "log record",
    "facts": "log records",
    "fate": "verdict",
    "fence": "sandbox",
    "fold": "session state, apply",
    "handle": "process",
    "handles": "processes",
    "hole": "known bug, mutant",
    "holes": "known bugs, mutants",
    "ill": "inject",
    "lifetimes": "crash runner, boots",
    "look": "read, observe",
    "looked": "read, observe",
    "looks": "read, observe",
    "outside": "provider ledger",
    "owe": "outbox",
    "owed": "outbox",
    "owes": "outbox",
    "pending": "unsynced",
    "placing": "parents first",
    "play": "script",
    "player": "scripted agent",
    "promise": "outbox entry",
    "promised": "enqueued",
    "promises": "outbox",
    "remains": "orphans",
    "rest": "park, quiesce",
    "retelling": "reduce",
    "saw": "read",
    "scenario": "workload",
    "scenarios": "workloads",
    "seen": "observed",
    "shorten": "reduce",
    "shortened": "reduced",
    "shortens": "reduces",
    "shrinker": "reduction",
    "specimen": "mutant",
    "specimens": "mutants",
    "subject": "target",
    "subjects": "targets",
    "tell": "report, render, record, dispatch",
    "telling": "representative",
    "tells": "report, render, record, dispatch",
    "told": "report, render, record, dispatch",
    "twin": "duplicate",
    "twins": "duplicates",
    "untold": "lost update",
    "witness": "evidence, run log",
    "witnesses": "evidence, run log",
}
"""Each word with what to use instead."""

_STANDARD = {
    # asyncio's own classes, and what its event loop has to override.
    "Handle", "TimerHandle", "handle", "call_exception_handler", "AbstractEventLoop",
    # A lock level of SQLite.
    "PENDING",
    # A hole of a file.
    "SEEK_HOLE", "HOLE", "_data_or_hole", "test_blocks_of_zeros_are_holes",
    "test_seek_data_and_seek_hole_find_the_blocks",
    "test_files_directories_links_and_holes_are_written",
    "test_a_hole_is_unwritten",
    # The io API and the warnings module.
    "tell", "add_note", "__notes__",
    # multiprocessing: a descriptor for another process.
    "send_handle", "recv_handle",
    # Hypothesis's engine.
    "new_shrinker",
    # A set of visited items, as in Python's documentation; a member of calibration files.
    "seen",
    # To look up a row.
    "forgotten_ids_are_not_looked_up",
}  # fmt: skip
"""Whole names that other libraries, formats or standard usage give."""

_EXEMPT = (
    # The fencing token of a claim, a column of ``state.db``.
    ("fence", ("system/durable/", "oracles/durable/", "crash_tests/", "tests/unit/")),
    # The attribute of a datetime in an hour that the clocks repeat.
    ("fold", ("system/durable/recurrence.py", "oracles/durable/nominal_times.py")),
    # The log framing of that name, and messages that wait in an inbox.
    ("pending", ("system/", "crash_tests/", "oracles/", "tests/", "benchmarks/")),
    ("handle", ("sim/loop/", "tests/unit/loop/")),
    ("handles", ("sim/loop/",)),
)

_NAME = re.compile(r"[^\W\d]\w*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class Removed(NamedTuple):
    """A name with a removed word in it, and the line where it first occurs."""

    path: str
    line: int
    name: str
    word: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name}: {REMOVED[self.word]}"


def words_of(name: str) -> list[str]:
    """Return the words of an identifier, lower case."""
    return [word.lower() for part in name.split("_") for word in _WORD.findall(part)]


@cache
def _removed_in(name: str) -> list[str]:
    return [word for word in words_of(name) if word in REMOVED]


def removed_words(path: Path) -> Iterator[Removed]:
    """Yield each name of a file, its own included, that contains a removed word."""
    shown, source = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    # Most files have none even in their prose, and are not tokenized.
    suspects = [
        name
        for name in {path.stem, *_NAME.findall(source)}
        if any(not _is_standard(shown, name, word) for word in _removed_in(name))
    ]
    if not suspects:
        return
    names = {path.stem: 0}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            names.setdefault(token.string, token.start[0])
    for name, line in names.items():
        for word in _removed_in(name):
            if not _is_standard(shown, name, word):
                yield Removed(shown, line, name, word)


def _is_standard(path: str, name: str, word: str) -> bool:
    return name in _STANDARD or any(
        word == exempt and path.startswith(folders) for exempt, folders in _EXEMPT
    )


def main(arguments: list[str]) -> None:
    """Print the findings below the given paths."""
    chosen = tuple(str(ROOT / argument) for argument in arguments) or (str(ROOT),)
    for path in python_files():
        if str(path).startswith(chosen):
            for found in removed_words(path):
                sys.stdout.write(f"{found}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
