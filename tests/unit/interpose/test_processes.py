"""Only one process and one interpreter see the disk: others are refused before they start."""

from __future__ import annotations

import multiprocessing
import subprocess
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.context import ForkProcess, ForkServerProcess, SpawnProcess
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from powercut.interpose.interposed import interposed
from powercut.interpose.program_calls import INTERPRETERS
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import EscapedSimulation


@pytest.mark.parametrize("kind", [ForkProcess, SpawnProcess, ForkServerProcess])
def test_a_process_of_multiprocessing_is_refused(kind: type[BaseProcess]) -> None:
    process = kind(target=print)
    refused = rf"starts another process.*, at .*{Path(__file__).name}:\d+ .*powercut try"
    with pytest.raises(EscapedSimulation, match=refused), interposed(Process(Disk())):
        process.start()
    assert process.pid is None


def test_another_interpreter_is_refused() -> None:
    create = _function_to_create_interpreters()
    refused = rf"create starts another interpreter, at .*{Path(__file__).name}:\d+ "
    with pytest.raises(EscapedSimulation, match=refused), interposed(Process(Disk())):
        create()


def _function_to_create_interpreters() -> Callable[[], object]:
    with interposed(Process(Disk())):
        pass
    for name in INTERPRETERS:
        module, _, function = name.rpartition(".")
        with suppress(ImportError):
            found: Callable[[], object] = getattr(import_module(module), function)
            return found
    raise AssertionError("every supported interpreter has one of the functions")


def test_the_locks_of_multiprocessing_and_missing_programs_are_no_process() -> None:
    with interposed(Process(Disk())):
        with multiprocessing.get_context("spawn").Lock():
            pass
        with suppress(FileNotFoundError):
            subprocess.run(["/powercut-no-such-program"], check=False)
