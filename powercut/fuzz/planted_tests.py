"""Tests of a mutant: pytest runs them while the bug is planted.

Such a mutant is found if each of its tests fails. Program and tests are imported anew, so
that the tests see the patched program.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any, Final

from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.mutant_search import MutantSearch
from powercut.fuzz.target_mistake import TargetMistake
from powercut.reference import load

_QUIET: Final = ("-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "--assert=plain")
_ERROR: Final = "ERROR"
_RAN: Final = (0, 1)
"""The exit codes of pytest for tests that were all run."""


class FailedTests:
    """A plugin of pytest: the ids of the tests that have failed."""

    def __init__(self) -> None:
        self.ids: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the test if its setup, its call or its teardown has failed."""
        if report.failed:
            self.ids[report.nodeid] = None


def run_tests(entry: MutantEntry, clock: Callable[[], float]) -> MutantSearch:
    """Run the tests of a mutant, from the current directory; say whether all of them fail.

    Call it in a process that does nothing else. ``clock`` returns seconds. Raises
    ``TargetMistake`` for a mutant that cannot be planted, and for tests that cannot be run.
    """
    mutant, start = entry.mutant, clock()
    run_pytest: Any = load("pytest:main")
    failed, output = FailedTests(), StringIO()
    with redirect_stdout(output), redirect_stderr(output), entry.patched(entry.reference):
        code = run_pytest([*_QUIET, *mutant.tests], plugins=[failed])
    if code not in _RAN:
        raise TargetMistake(f"its tests cannot be run: {_errors_in(output.getvalue())}")
    passed = [test for test in mutant.tests if not _has_failed(test, failed)]
    names = tuple(test.rpartition("::")[2] for test in mutant.tests)
    broken = "" if passed else names[0]
    return MutantSearch(entry.tag, mutant.title, names, len(names), clock() - start, broken)


def _has_failed(test: str, failed: FailedTests) -> bool:
    """Whether a test, or it with some parameters, has failed."""
    return any(each == test or each.startswith(f"{test}[") for each in failed.ids)


def _errors_in(output: str) -> str:
    """Return the errors that pytest has printed, or all that it has printed, in one line."""
    errors = [line for line in output.splitlines() if line.startswith(_ERROR)]
    return "; ".join(line.removeprefix(_ERROR).strip(": ") for line in errors) or " ".join(
        output.split()
    )
