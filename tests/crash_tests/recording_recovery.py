"""Recoveries of a recorded root, crashed at every operation, and judged by its specification."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crash_tests.targets.recording_reads import (
    DIRECTORIES,
    check_incomplete,
    check_record_files,
    names_in,
    read_store,
)
from crash_tests.workloads.lifetime import Lifetime
from oracles.history import History, Known
from oracles.recording.record_reader import ObservedRecord
from oracles.recording.root_files import check_recovered_names
from oracles.recording.violations import UnreportedDamage
from oracles.violation import Duplicated, FalseAlarm, Garbage, NotIdempotent
from powercut.explorer.explore import explore
from powercut.explorer.limits import Limits
from powercut.explorer.two_phases import TwoPhases
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from system.ports import FileSystem
from system.recording.open_recording import open_recording
from system.recording.wal_store import WalExecutionStore
from system.storage.atomic_file import read_whole
from tests.crash_tests.recorded_root import SEGMENT_BYTES, RecordedRoot


class Recovered(NamedTuple):
    """The records after a recovery, the paths that it reports, and the copies of bad bytes."""

    records: dict[str, ObservedRecord | None]
    reported: tuple[str, ...]
    aside: dict[str, bytes]


def recover(
    process: Process, started: Collection[str] = (), *, has_damaged_pack: bool = False
) -> Recovered:
    """Open the recording, which recovers it; check the files that it leaves.

    A record of ``started`` that is hidden by damage is found as a damaged one.
    ``has_damaged_pack``: a pack of records is damaged.
    """
    with Lifetime(process) as (host, loop):
        opened = open_recording(host, segment_bytes=SEGMENT_BYTES)
        recording, log = loop.run_until_complete(opened)
        store = WalExecutionStore(recording, host.clock)
        records = read_store(store, started)
        check_incomplete(store, records)
        check_record_files(host.files, records, is_silent=has_damaged_pack)
        check_recovered_names({each: names_in(host.files, each) for each in DIRECTORIES})
        aside = _aside(host.files)
    report = log.report
    reported = (
        *(each.path for each in report.damaged),
        *(f"missing {gap}" for gap in report.missing),
        *report.corrupted,
        # A finding begins with a path.
        *(finding.partition(": ")[0] for finding in (*report.findings, *report.foreign)),
    )
    return Recovered(records, reported, aside)


def _aside(files: FileSystem) -> dict[str, bytes]:
    """Return the copies of bad bytes by path; check that no temporary file is left."""
    places = ["", *(each for each in DIRECTORIES if files.kind(each) is not None)]
    paths = [os.path.join(place, name) for place in places for name in files.listdir(place)]
    if temporary := [path for path in paths if ".tmp." in path]:
        raise Garbage("a temporary file is left", paths=temporary)
    return {path: read_whole(files, path) for path in paths if ".quarantine." in path}


@dataclass(frozen=True)
class Bad:
    """Damage to a file of a root: the file, and the bytes that must be kept of it, if any.

    ``excused`` are the executions that may have lost log records to it.
    """

    path: str
    data: bytes | None
    excused: Collection[str] = ()


def explored(root: RecordedRoot, model: str, limits: Limits, bad: Bad | None = None) -> Exploration:
    """Crash the recovery of a root at every operation, and recover again."""
    uncrashed = recover(Process(Disk(root.image)))

    def work(process: Process, ack: History) -> None:
        found = recover(process)
        _check_report(found, bad, is_first=True)
        ack(found.records)

    def judge(found: Recovered, known: Known) -> None:
        for records in known.acknowledged:
            assert isinstance(records, dict)
            _require_same(found.records, records)
        if not root.image.unsynced:
            _require_same(found.records, uncrashed.records)
        _check_report(found, bad, is_first=False)
        root.shadow().settle(
            found.records, kept=False, excused=() if bad is None else bad.excused, reported=True
        )

    return explore(work, TwoPhases(recover, judge), model, limits, image=root.image)


def _require_same(
    found: Mapping[str, ObservedRecord | None], expected: Mapping[str, ObservedRecord | None]
) -> None:
    if found != expected:
        changed = [
            each for each in sorted(found.keys() | expected.keys())
            if found.get(each) != expected.get(each)
        ]  # fmt: skip
        raise NotIdempotent(
            "a recovery after a crashed one has other records",
            execution_ids=changed, expected=expected, actual=found,
        )  # fmt: skip


def _check_report(found: Recovered, bad: Bad | None, *, is_first: bool) -> None:
    """Check that damage is reported, by the first recovery at least, and nothing else is.

    A later one may find the bad bytes only in quarantine.
    """
    copies = list(found.aside.items())
    if len(set(found.aside.values())) < len(copies):
        raise Duplicated("the same bytes were quarantined twice", copies=copies)
    if bad is None:
        if found.reported or copies:
            raise FalseAlarm("recovery reports damage that no crash can do", found=found)
    elif (is_first and bad.path not in found.reported) or (
        bad.data is not None and bad.data not in found.aside.values()
    ):
        raise UnreportedDamage("damage is not reported, or the bad bytes are gone", found=found)


def with_file(
    root: RecordedRoot, path: str, change: Callable[[bytes], bytes | None]
) -> RecordedRoot:
    """Return a durable root with one file changed, or removed."""
    process = Process(Disk(root.image))
    content = change(root.image.files()[f"/{path}"])
    if content is None:
        process.unlink(f"/{path}")
    else:
        descriptor = process.open(f"/{path}", os.O_WRONLY | os.O_TRUNC)
        process.write(descriptor, content)
        process.close(descriptor)
    image = process.disk.snapshot()
    return root._replace(image=Image.of_platter(image.cached, image.next_inode))
