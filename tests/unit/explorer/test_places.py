"""Places: each operation and each acknowledgement knows its line of the program."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import pytest

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from oracles.history import History
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.place import Place, Stack
from powercut.place_recorder import PlaceRecorder
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX
from sim.disk.disk import Disk

HERE = "tests/unit/explorer/test_places.py"


def recorded(workload: Callable[[Process, History], None]) -> RecordedWorkload:
    return record(workload, POSIX, Image.empty())


def test_operations_and_acknowledgements_have_the_lines_of_the_workload() -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"x")
        ack.attempt({"/f": b"x"})
        ack({"/f": b"x"})

    first = workload.__code__.co_firstlineno
    found = recorded(workload)
    name = workload.__qualname__
    assert found.places == {1: Place(HERE, name, first + 1), 2: Place(HERE, name, first + 2)}
    assert [entry.place for entry in found.history.entries] == [
        Place(HERE, name, first + 3),
        Place(HERE, name, first + 4),
    ]


def test_a_call_from_the_standard_library_belongs_to_the_line_that_calls_it() -> None:
    def workload(process: Process, _: History) -> None:
        file = process.open_file("/f", "wb")
        with closing(file):
            file.write(b"x")

    found = recorded(workload)
    first = workload.__code__.co_firstlineno
    assert [found.places[number].line - first for number in (1, 2)] == [1, 2]


def test_a_stack_without_a_line_of_the_program_has_no_place() -> None:
    assert Stack().place(None) is None


def test_the_recorder_passes_calls_on_to_the_interposer_before_it() -> None:
    disk = Disk()
    injector = FaultInjector(FaultPlan.parse("write * #1 ENOSPC"))
    disk.interposer = injector
    recorder = PlaceRecorder(disk)
    process = Process(disk)
    descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
    with pytest.raises(OSError, match="No space left"):
        process.write(descriptor, b"x")
    process.write(descriptor, b"x")
    assert process.pread(descriptor, 9, 0) == b"x"
    assert sorted(recorder.places) == [1, 2]


@dataclass(frozen=True)
class _Frozen:
    value: object


def test_a_function_that_python_has_generated_for_a_dataclass_is_no_line_of_the_program() -> None:
    with pytest.raises(TypeError) as raised:
        hash(_Frozen([]))
    place = Stack().raised_at(raised.value.__traceback__)
    assert place is not None
    assert place.file == HERE
