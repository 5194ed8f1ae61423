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


PAIRS = ("ab", "cd")


def redo(process: Process, *, synced: bool) -> None:
    """Make the files that the log names, and remove the log."""
    sync_root(process)
    for name in content_of(process, "/redo").decode():
        descriptor = process.open(f"/{name}.new", os.O_CREAT | os.O_WRONLY)
        process.fsync(descriptor)
        process.close(descriptor)
        process.rename(f"/{name}.new", f"/{name}")
    if synced:
        sync_root(process)
    if "redo" in process.listdir("/"):
        process.unlink("/redo")
    if synced:
        sync_root(process)


def make_pairs(process: Process, ack: History) -> None:
    """Make two pairs of files, each by a log; the second one is acknowledged before it is made."""
    for pair in PAIRS:
        descriptor = process.open("/redo.tmp", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, pair.encode())
        process.fsync(descriptor)
        process.close(descriptor)
        process.rename("/redo.tmp", "/redo")
        sync_root(process)
        if pair == PAIRS[-1]:
            ack(pair)
        redo(process, synced=True)


def check_pairs(process: Process, known: Known) -> None:
    redo(process, synced=False)
    names = {*process.listdir("/")}
    for pair in PAIRS:
        assert len(names & {*pair}) != 1, f"{pair} is there in part"
    if known.acknowledged and "c" not in names:
        raise LostAck("the second pair is lost")


def test_a_barrier_that_a_recovery_misses_for_various_files_is_one_cause() -> None:
    (cause,) = diagnosed(make_pairs, check_pairs, ("posix",)).causes
    assert [*gaps(cause)] == [("/", "rename", "unlink")]
