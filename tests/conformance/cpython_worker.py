"""Runs one of CPython's own test suites, and writes the outcome of each test as JSON.

``python -m tests.conformance.cpython_worker SUITE FILE [ROOT]``: with ROOT the suite runs
interposed, on an empty simulated disk below it; else in the current directory.
"""

from __future__ import annotations

import json
import os
import sys
import time
import unittest
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from powercut.interpose.guard import EventGuard, watch
from powercut.interpose.interposed import interposed
from powercut.interpose.router import ROUTER
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

Failure = tuple[type[BaseException], BaseException, TracebackType]


class Outcomes(unittest.TestResult):
    """The outcome of each test by its name: "ok", "skipped", or the last line of its error."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.found.setdefault(test.id(), "ok")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.found[test.id()] = "skipped"

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.found[test.id()] = _last_line(err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self.found[test.id()] = _last_line(err)

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.found[test.id()] = "ok"

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.found[test.id()] = _last_line(err)


class LocalGuard(EventGuard):
    """The guard of ``interposed``, with connections allowed: servers run in threads."""

    def check(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.__new__" or not event.startswith("socket."):
            super().check(event, arguments)


def _last_line(failure: Failure) -> str:
    kind, error, trace = failure
    where = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
        trace_next = trace.tb_next
        if trace_next is None:
            break
        trace = trace_next
    text = str(error).strip().splitlines()
    return f"{kind.__name__}: {text[0] if text else ''} [{where}]"


def tests_of(suite: str) -> unittest.TestSuite:
    """Load a suite as ``regrtest`` does."""
    module = import_module(f"test.{suite}")
    loader = unittest.TestLoader()
    return loader.loadTestsFromModule(module)


def main(suite: str, file: str, root: str = "") -> None:
    outcomes = Outcomes()
    block: AbstractContextManager[Any] = nullcontext()
    if root:
        block = interposed(Process(Disk(now_ns=time.time_ns)), root, sandbox=False)
    target = os.path.abspath(file)
    with block:
        # Suites ask at their import which features there are, by using them.
        tests = tests_of(suite)
        if ROUTER.lifetime is not None:
            watch(LocalGuard(ROUTER.lifetime, ROUTER.lifetime.refuse))
        tests.run(outcomes)
        if ROUTER.lifetime is not None:
            # A refusal is an outcome of its test.
            ROUTER.lifetime.escape = None
    Path(target).write_text(json.dumps(outcomes.found), "utf-8")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
