"""The run log: the place of an exception, which decides whether two runs fail in the same way."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from powercut.fuzz.run_log import detail_of
from sim.disk.calls.process import Process
from sim.disk.disk import Disk


def load(process: Process) -> None:
    process.open("/absent", os.O_RDONLY)


def clean(process: Process) -> None:
    process.unlink("/absent")


def count(_: Process) -> None:
    int("")


@pytest.mark.parametrize("action", [load, clean, count])
def test_an_exception_has_its_place_in_the_program_and_not_in_the_disk(
    action: Callable[[Process], None],
) -> None:
    with pytest.raises((OSError, ValueError)) as raised:
        action(Process(Disk()))
    assert detail_of(raised.value) == f"test_run_log.py:{action.__name__}"
