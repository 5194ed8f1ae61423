"""The whole runtime while the log of one session rots: every bit counts, the others lose nothing.

A team of agents has worked and closed, and all of its files are durable. One bit of a log is
flipped, and the root is opened. No recovery may fail, all lines but the one that was hit stay,
the report names the damage, and no other session changes. If no later line says that the one
that was hit was durable, nothing distinguishes it from the torn end of a log: then it and the
lines after it are cut off and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple

import pytest

from crash_tests.rig.process_host import host_of
from crash_tests.targets.watched_providers import WatchedProviders
from crash_tests.workloads.runtime import runtime as team
from oracles.history import History
from oracles.runtime.log_reader import read_log
from oracles.runtime.shadow_turns import ShadowTurns
from powercut.fuzz.source_patch import SourcePatch, patched
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from system.recovery.recovery_report import RecoveryReport
from system.runtime import Options, Runtime
from tests.sample import Sample

STRIDE: Final = 13
"""Bytes from one flipped bit to the next: each member of a line is hit."""


UNCHECKED: Final = SourcePatch(
    "system.storage.codec",
    "if not line.endswith(_SEALED % actual):",
    "if line[-_SEAL_BYTES:-10] != _SEAL:",
)


class Root(NamedTuple):
    """A root: the disk and its files by path."""

    image: Image
    files: dict[str, bytes]

    @classmethod
    def of(cls, disk: Disk) -> Root:
        return cls(disk.unmounted(), disk.files())


class Rot(NamedTuple):
    """One flipped bit: byte ``offset`` of the log at ``path``."""

    path: str
    offset: int


@cache
def healthy() -> Root:
    disk = Disk()
    team.run(Process(disk), History(lambda: disk.operations))
    return Root.of(disk)


def rots() -> Iterator[Rot]:
    """Yield one bit of each stretch of each log, a different one of its byte every time."""
    for path, content in sorted(healthy().files.items()):
        if path.endswith("/events.jsonl"):
            yield from (Rot(path, offset) for offset in range(0, len(content), STRIDE))


def rotten(rot: Rot) -> Image:
    disk = Disk(healthy().image)
    process = Process(disk)
    byte = healthy().files[rot.path][rot.offset]
    descriptor = process.open(rot.path, 2)
    process.pwrite(descriptor, bytes([byte ^ 1 << rot.offset % 8]), rot.offset)
    return disk.unmounted()


def recovered(image: Image) -> tuple[Root, RecoveryReport]:
    """Open a root and close it; return it as it is then, and the report."""
    disk = Disk(image)
    clock = SimulatedClock()
    loop = SimulatedLoop(clock, PlainChoices(), disk)
    host = host_of(Process(disk), clock)
    providers = WatchedProviders(ShadowTurns()).by_name
    runtime = loop.run_until_complete(Runtime.recover(host, providers, Options()))
    loop.run_until_complete(runtime.close())
    loop.raise_unhandled()
    return Root.of(disk), runtime.report


def broken_laws(rot: Rot) -> Iterator[str]:
    """Yield the laws that the recovery after ``rot`` breaks."""
    after, report = recovered(rotten(rot))
    before = healthy().files
    for path, content in before.items():
        is_other = path.endswith("/events.jsonl") and path != rot.path
        if is_other and not after.files[path].startswith(content):
            yield f"{path} has changed"
    lines = read_log(before[rot.path]).lines
    hit = before[rot.path].count(b"\n", 0, rot.offset)
    # Without its line end, a line takes the next one with it.
    last_hit = hit + (before[rot.path][rot.offset] == ord("\n"))
    is_end = all(line.durable <= hit for line in lines[last_hit + 1 :])
    kept = set(after.files[rot.path].split(b"\n"))
    must_stay = [*lines[:hit], *(() if is_end else lines[last_hit + 1 :])]
    if not all(line.raw in kept for line in must_stay):
        yield "lines that were not hit are gone"
    if is_end and not (report.torn_bytes or report.damaged):
        yield "the report does not count the end that was cut off"
    if not is_end and not any(damage.path == rot.path[1:] for damage in report.damaged):
        yield "the report does not name the damage"
    if not is_end and report.torn_bytes:
        yield "damage counts as a torn end"
    again, second = recovered(after.image)
    if again.files.keys() != after.files.keys() or second.damaged or second.torn_bytes:
        yield "a second recovery found more"


@pytest.mark.parametrize("path", sorted({rot.path for rot in rots()}))
def test_one_flipped_bit_is_reported_and_costs_one_line(path: str, sample: Sample) -> None:
    tried = sample([rot for rot in rots() if rot.path == path], 40)
    assert [(rot, law) for rot in tried for law in broken_laws(rot)] == []


def test_a_checksum_that_is_not_compared_is_noticed() -> None:
    with patched([UNCHECKED], ["crash_tests", "tests"]):
        module = import_module(__name__)
        assert any(law for rot in module.rots() for law in module.broken_laws(rot))
