"""A program and its recovery run the same lines, which miss a barrier."""

from __future__ import annotations

import os

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.crash_state import done_at
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.repair import preventable
from sim.disk.cache.operation import Write
from sim.disk.calls.process import Process
from tests.unit.explorer.test_recovery_causes import diagnosed, gaps, sync_root


def content_of(process: Process, path: str) -> bytes:
    """Return the content of a file; of one that is missing, none."""
    try:
        descriptor = process.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return b""
    return process.read(descriptor, 100)


def begin_log(process: Process, generation: int, total: int) -> None:
    """Make the log of a generation durable, with the total before it, and without records."""
    descriptor = process.open(f"/log-{generation}", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    process.write(descriptor, b"%d, " % total)
    process.fsync(descriptor)
    sync_root(process)


def append(process: Process, generation: int) -> None:
    """Append a record durably to the log of a generation."""
    descriptor = process.open(f"/log-{generation}", os.O_APPEND | os.O_WRONLY)
    process.write(descriptor, b"record\n")
    process.fsync(descriptor)


def add_up(process: Process) -> tuple[int, int]:
    """Move the records of the log into the total, by a file that is not synced; return both."""
    generation, total = map(int, content_of(process, "/total").split() or (0, 0))
    added = content_of(process, f"/log-{generation}").count(b"\n")
    if added:
        generation, total = generation + 1, total + added
        begin_log(process, generation, total)
        descriptor = process.open("/total.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        process.write(descriptor, b"%d %d" % (generation, total))
        process.rename("/total.tmp", "/total")
        sync_root(process)
        process.unlink(f"/log-{generation - 1}")
    return generation, total


def workload(process: Process, ack: History) -> None:
    begin_log(process, 0, 0)
    append(process, 0)
    ack("first")
    generation, _ = add_up(process)
    for value in ("second", "third"):
        append(process, generation)
        ack(value)


def check(process: Process, known: Known) -> None:
    _, total = add_up(process)
    if total < len(known.acknowledged):
        raise LostAck("records are lost", total=total)


def test_the_recovery_misses_the_barrier_that_the_program_misses_before_it() -> None:
    causes = diagnosed(workload, check, ("ext4",)).causes
    recovered = [cause for cause in causes if cause.recovery is not None]
    assert [each for cause in recovered for each in gaps(cause)] == [
        ("/total.tmp", "write", "rename")
    ]
    (gap,) = [cause.gap for cause in causes if cause.recovery is None]
    assert isinstance(gap, Gap)
    assert (gap.path, gap.first.kind, gap.last.kind) == ("/total.tmp", "write", "rename")


def test_a_failure_of_the_recovery_does_not_make_a_moment_of_the_program_hopeless() -> None:
    """The recovery fails also if a power cut loses the last record, and nothing else, before it."""
    found = diagnosed(workload, check, ("ext4",)).explorations["ext4"]
    journal = found.workload.journal
    last = max(number for number, each in enumerate(journal, 1) if isinstance(each, Write))
    at_last = [each for each in found.failures if done_at(each.crashes[0]) == last]
    assert {len(each.crashes) for each in at_last if each.needs_power_cut} == {1, 2}
    alone = [each for each in at_last if len(each.crashes) == 1]
    left = {each.state for each in preventable(found)}
    assert {each.state for each in alone} <= left
