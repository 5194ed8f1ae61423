"""Damage to segments and records of a recording, done while no process has them open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple
from zlib import MAX_WBITS, compress, decompress, error

from crash_tests.rig.process_host import host_of
from oracles.recording.pack_reader import members_of, with_member
from oracles.recording.root_files import first_segment
from oracles.recording.violations import BrokenRecord
from oracles.recording.wal_reader import (
    HEADER_BYTES,
    PART,
    WalEntry,
    WalSegment,
    log_record_of,
    read_segment,
)
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from sim.loop.ids import SimulatedIds
from system.ports import FileSystem, Host, OpenMode, SideEffectClass
from system.recording.executions.execution import Execution
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.wal.log import WriteAheadLog
from system.storage.atomic_file import replace_file
from system.storage.path import name_of
from system.storage.transfer import write_all

RECORD: Final = "record"
STALE: Final = "stale"
ZERO: Final = "zero"
KINDS: Final = (ZERO, "flip", "length", "truncate", STALE, RECORD)
"""The kinds of damage: an entry, a bit of its payload, or its length is changed; the last entries
are cut off; an entry of an earlier lifetime follows; a record loses its last event, which only its
hashes show."""

_DIRECTORY: Final = "wal"
_RECORDS: Final = "records"
_SCRATCH: Final = "snapshots"
_LEAST_LOG_RECORDS: Final = 2


class Damage(NamedTuple):
    """The executions that may have lost log records, and whether the recovery must report that."""

    execution_ids: frozenset[str]
    must_be_reported: bool


def damage_segment(files: FileSystem, kind: str, place: int, checkpoint: int) -> Damage | None:
    """Damage one entry of the last segment, counted from its end; return None if there is none.

    ``checkpoint`` is the number up to which entries are in records and snapshots.
    """
    path = _last_segment(files)
    content = b"" if path is None else files.read(path)[0]
    segment = read_segment(content)
    if path is None or segment is None or not segment.entries:
        return None
    index = max(0, len(segment.entries) - 1 - place)
    entry = segment.entries[index]
    behind = segment.entries[index + 1 :]
    is_contained = kind != "truncate" and _is_known_durable(entry, behind)
    lost = [entry] if is_contained else [entry, *behind]
    ids = frozenset(log_record_of(each).execution_id for each in lost if each.entry_type != PART)
    _write(files, path, kind, segment, index, content)
    previous = segment.first - 1 if index == 0 else entry.sequence - 1
    if kind == "truncate":
        return Damage(ids, must_be_reported=previous < checkpoint)
    return Damage(ids, must_be_reported=entry.sequence > checkpoint)


def append_stale_entry(files: FileSystem, last: int) -> Damage | None:
    """Append the entry after ``last`` of an earlier lifetime of the last segment.

    A file system may leave such bytes in a block that it uses again. The number fits, but the
    execution was never recorded. Returns None if there is no segment.
    """
    path = _last_segment(files)
    segment = None if path is None else read_segment(files.read(path)[0])
    if path is None or segment is None:
        return None
    earlier = replace(host_of(Process(Disk(Image.empty()))), ids=_EarlierIds(PlainChoices()))
    log = WriteAheadLog(earlier, last=segment.first - 1)
    while log.last <= last:
        execution = Execution.new(
            earlier.clock, f"exec-{log.last:016x}", FrozenEnvelope.of({"log": "an earlier one"}),
            SideEffectClass.REVERSIBLE,
        )  # fmt: skip
        log.append(execution.log_records.recent)
    log.close()
    content = earlier.files.read(log.segments[0][0])[0]
    stale = read_segment(content)
    assert stale is not None
    file = files.open(path, OpenMode.WRITE)
    try:
        write_all(file, content[stale.entries[-1].start :], file.size())
        file.fsync()
    finally:
        file.close()
    return Damage(frozenset(), must_be_reported=True)


def is_log_superfluous(files: FileSystem) -> bool:
    """Return whether the checkpoint lets the last segment be removed, so that it is not read."""
    path = _last_segment(files)
    if path is None or files.kind("checkpoint") is None:
        return False
    return int(name_of(path).partition(".")[0]) < first_segment(files.read("checkpoint")[0])


class _EarlierIds(SimulatedIds):
    """Ids with which no segment of another lifetime is made."""

    def random_hex(self, digits: int) -> str:
        return "e" * digits


def damage_record(host: Host, place: int) -> Damage | None:
    """Cut off the last log record of one execution of a pack; return None if there is none.

    ``place`` chooses the execution. Afterwards its position in the pack is right, and its digest
    is wrong.
    """
    files = host.files
    members = list(_served_from_packs(files))
    for path, execution_id, member in members[place % len(members) :] if members else ():
        try:
            lines = decompress(member, MAX_WBITS | 16).splitlines(keepends=True)
        except error:
            continue  # for a bit that was flipped
        if len(lines) < _LEAST_LOG_RECORDS:
            continue
        cut = compress(b"".join(lines[:-1]), wbits=MAX_WBITS | 16)
        content = with_member(files.read(path)[0], execution_id, cut)
        replace_file(files, path, content, host.ids, _SCRATCH)
        files.sync_dir(_RECORDS)
        # The store reports it, when the record is read.
        return Damage(frozenset((execution_id,)), must_be_reported=False)
    return None


def _served_from_packs(files: FileSystem) -> Iterator[tuple[str, str, bytes]]:
    """Yield pack, id and member of each record that look-ups read from this pack."""
    names = [] if files.kind(_RECORDS) is None else files.listdir(_RECORDS)
    seen = {name.partition(".")[0] for name in names if name.endswith((".json", ".json.gz"))}
    for name in sorted(names, reverse=True):
        if not name.endswith(".pack"):
            continue
        path = f"{_RECORDS}/{name}"
        try:
            members = members_of(files.read(path)[0])
        except BrokenRecord:
            continue
        for execution_id, member in members.items():
            if execution_id not in seen:
                yield path, execution_id, member
        seen.update(members)


def _last_segment(files: FileSystem) -> str | None:
    if files.kind(_DIRECTORY) is None:
        return None
    names = [name for name in files.listdir(_DIRECTORY) if name.endswith(".wal")]
    return f"{_DIRECTORY}/{names[-1]}" if names else None


def _is_known_durable(entry: WalEntry, behind: Sequence[WalEntry]) -> bool:
    """Return whether a later entry says that this one was durable."""
    for later in behind:
        if later.entry_type != PART:
            durable = log_record_of(later).durable
            if (later.sequence - 1 if durable is None else durable) >= entry.sequence:
                return True
    return False


def _write(
    files: FileSystem, path: str, kind: str, segment: WalSegment, index: int, content: bytes
) -> None:
    entry = segment.entries[index]
    with_damage = files.open(path, OpenMode.WRITE)
    try:
        match kind:
            case "truncate":
                with_damage.truncate(segment.entries[index - 1].end if index else HEADER_BYTES)
            case "zero":
                write_all(with_damage, bytes(entry.end - entry.start), entry.start)
            case "length":
                write_all(with_damage, bytes((content[entry.start] ^ 0x40,)), entry.start)
            case _:
                write_all(with_damage, bytes((content[entry.end - 2] ^ 1,)), entry.end - 2)
        with_damage.fsync()
    finally:
        with_damage.close()
