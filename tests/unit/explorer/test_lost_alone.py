"""A finding that no fsync helps shows a power cut that no fsync prevents."""

from __future__ import annotations

import os

from oracles.history import History, Known
from powercut.explorer.cause import NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from powercut.report.findings import crash_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX


def _indexed(process: Process, ack: History) -> None:
    """Append a record to a log without an fsync, and its number to an index."""
    log = process.open("/log", os.O_CREAT | os.O_WRONLY)
    index = process.open("/index", os.O_CREAT | os.O_WRONLY)
    process.sync()
    process.write(log, b"record")
    process.write(index, b"1")
    process.fsync(index)
    ack("record")


def _check(process: Process, _known: Known) -> None:
    if not {"log", "index"} <= {*process.listdir("/")}:
        return
    with process.open_file("/index", "rb") as file:
        number = file.read().strip(b"\0")
    if not number:
        return
    assert number == b"1", "a wrong number"
    with process.open_file("/log", "rb") as file:
        assert file.read() == b"record", "a number without a record"


def test_what_an_fsync_prevents_beside_a_change_that_is_not_atomic_is_not_shown() -> None:
    """Stale bytes in the index make the moment unsafe, whatever the log has lost there."""
    recorded = record(_indexed, POSIX, Image.empty())
    found = diagnose(judged(recorded, _check, [MODELS["ext4-writeback"]]))
    missing, stale = sorted(found.causes, key=lambda each: each.gap is NoGap.NOT_ATOMIC)
    assert isinstance(missing.gap, Gap)
    assert missing.gap.path == "/log"
    assert stale.gap is NoGap.NOT_ATOMIC
    lost = [*crash_lines(found.explorations["ext4-writeback"], stale.failure)][1:]
    assert [line.rpartition(", ")[0] for line in lost] == [
        "  lost      data of /index, bytes 0 to 1, which shows stale bytes"
    ]
