"""Events name an operation as the program called it."""

from __future__ import annotations

import os

from oracles.history import History, HistoryEntry
from powercut.explorer.event import events_of
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.place import Place
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import POSIX
from sim.disk.disk import Disk


def test_the_removal_of_a_directory_is_an_rmdir() -> None:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("new")
        process.rmdir("old")
        process.rmdir("new")
        process.open("file", os.O_CREAT)
        process.unlink("file")
        ack(1)

    start = Disk()
    Process(start).mkdir("old")
    kinds = [event.kind for event in events_of(record(workload, POSIX, start.unmounted()))]
    assert kinds == ["mkdir", "rmdir", "rmdir", "create", "unlink", "ack"]


def test_a_byte_in_an_acknowledgement_is_readable() -> None:
    acks = History(lambda: 0, entries=[HistoryEntry(0, True, "line \udcff")])
    (ack,) = events_of(RecordedWorkload(Journal(Image.empty(), []), acks))
    assert str(ack) == r"ack 1 (line \xff)"


def test_an_acknowledgement_at_a_known_line_needs_no_text() -> None:
    acks = History(lambda: 0, lambda: Place("program.py", "save", 7))
    acks("saved")
    (ack,) = events_of(RecordedWorkload(Journal(Image.empty(), []), acks))
    assert (str(ack), ack.path) == ("ack at program.py:7", "")
