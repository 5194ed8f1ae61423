"""Reads of a recording, in the terms of its oracle."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from oracles.recording.canonical import canonical
from oracles.recording.crash_points import expected_point
from oracles.recording.pack_reader import members_of, read_pack
from oracles.recording.record_reader import ObservedRecord, read_record, read_record_file
from oracles.recording.shadow_execution import FAILURE, INCOMPLETE, INVALIDATED
from oracles.recording.violations import BrokenRecord, WrongCrashPoint, WrongReplay
from oracles.violation import FalseAlarm, Phantom
from system.ports import FileKind, FileSystem
from system.recording.crash_point import detect_incomplete
from system.recording.records.errors import (
    NotReplayableError,
    PackCorruptedError,
    RecordCorruptedError,
    RecordNotFoundError,
)
from system.recording.replays.replay_cache import CachingReplayEngine
from system.recording.stores.store import ExecutionStore
from system.storage.atomic_file import read_whole
from system.storage.path import name_of

DIRECTORIES = ("wal", "snapshots", "records")

WHOLE_PACK = ""
"""In place of the id of an execution: the pack cannot be read by its format."""


class DamagedCopy(NamedTuple):
    """The record of an execution in a pack; a newer file may have the same record undamaged."""

    pack: str
    execution_id: str


def read_one(store: ExecutionStore, execution_id: str) -> ObservedRecord | None:
    """Return a record of a store; None if it is missing or damaged."""
    try:
        record = store.load(execution_id)
    except (RecordNotFoundError, RecordCorruptedError):
        return None
    observed = read_record(record.to_dict())
    if observed.execution_id != execution_id:
        raise BrokenRecord("the store returns another record", asked=execution_id, record=observed)
    return observed


def read_store(
    store: ExecutionStore, started: Iterable[str] = ()
) -> dict[str, ObservedRecord | None]:
    """Return all records of a store, None for damaged ones; check that the look-ups agree.

    If damage hides a record, the store reports that when it is asked for one of the ``started``.
    """
    observed = {execution_id: read_one(store, execution_id) for execution_id in store.list_all()}
    if list(observed) != sorted(observed):
        raise BrokenRecord("the ids of a store are not sorted", ids=list(observed))
    for execution_id in sorted({*started} - observed.keys()):
        try:
            record = store.load(execution_id)
        except RecordCorruptedError:
            observed[execution_id] = None
        except RecordNotFoundError:
            continue
        else:
            raise BrokenRecord("a record is not listed", record=record)
    return observed


def check_record_files(
    files: FileSystem,
    observed: dict[str, ObservedRecord | None],
    excused: Collection[str] = (),
    known: Collection[DamagedCopy] = (),
    *,
    is_silent: bool = False,
) -> frozenset[DamagedCopy]:
    """Compare the record files after a recovery with the records that the store returns.

    Copies of ``excused`` executions may be damaged; after silent damage (``is_silent``) any pack
    may be damaged as a whole, and its records are not compared. Returns the damage of packs. It
    stays, because a pack is never changed: pass it as ``known`` at the next recovery.
    """
    written: dict[str, ObservedRecord] = {}
    damaged = {each for each, record in observed.items() if record is None} | {*excused}
    found_damage = set[DamagedCopy]()
    is_complete = True
    for name in sorted(names_in(files, "records"), key=_precedence):
        content = read_whole(files, f"records/{name}")
        if _is_pack(name):
            here = {copy.execution_id for copy in known if copy.pack == name}
            try:
                records = read_pack(name, content, damaged | here)
            except BrokenRecord:
                if not (is_silent or WHOLE_PACK in here):
                    raise
                is_complete = False
                found_damage.add(DamagedCopy(name, WHOLE_PACK))
                continue
            written |= records
            found_damage |= {
                DamagedCopy(name, each) for each in members_of(content).keys() - records
            }
        elif ".quarantine." not in name and observed.get(name.partition(".")[0]) is not None:
            own = read_record_file(name, content)
            written[own.execution_id] = own
    for execution_id, record in observed.items():
        found = written.get(execution_id)
        if record is not None and found != record and is_complete:
            raise BrokenRecord("a file has another record", file=found, store=record)
    return frozenset(found_damage)


def check_incomplete(
    store: ExecutionStore, observed: dict[str, ObservedRecord | None]
) -> list[str]:
    """Compare the list of interrupted executions with the records; return their stages."""
    report = detect_incomplete(store)
    found = {each.execution_id: each.point for each in report.executions}
    expected = {
        execution_id: expected_point(record)
        for execution_id, record in observed.items()
        if record is not None
        and record.response is None
        and record.reason not in {FAILURE, INVALIDATED}
    }
    for execution_id in sorted(expected.keys() | found.keys()):
        point = found.get(execution_id)
        actual = None if point is None else (point.stage, point.recovery, str(point.action))
        if actual != expected.get(execution_id):
            raise WrongCrashPoint(
                "an interrupted execution is missing, or is at another stage",
                execution_id=execution_id, expected=expected.get(execution_id), actual=actual,
            )  # fmt: skip
    return [point.stage for point in expected.values()]


def check_replay(engine: CachingReplayEngine, execution_id: str, record: ObservedRecord) -> str:
    """Replay a record twice, with a change of the first result in between; return its outcome."""
    outcomes: list[tuple[str | None, bytes | None]] = []
    for _ in range(2):
        try:
            response = engine.replay(execution_id).response
        except NotReplayableError as refused:
            outcomes.append((refused.reason, None))
            continue
        outcomes.append((None, canonical(response)))
        assert response is not None
        response["payload"] = "changed by the caller"
    reason = INCOMPLETE if record.response is None else record.reason
    expected = reason, None if reason else record.response
    for outcome in outcomes:
        if outcome != expected:
            raise WrongReplay("a replay is not exact", expected=expected, actual=outcome)
    return reason or "replayed"


def check_unknown(store: ExecutionStore, execution_id: str, known: Collection[DamagedCopy]) -> None:
    """Check that an id without a record raises ``RecordNotFoundError``.

    A pack of which ``known`` says that it cannot be read may have had the record: it is reported.
    """
    try:
        record = store.load(execution_id)
    except RecordNotFoundError:
        return
    except PackCorruptedError as damaged:
        if DamagedCopy(name_of(damaged.path), WHOLE_PACK) in known:
            return
        raise
    raise Phantom("a record exists that was never started", record=record)


def check_hashes(store: ExecutionStore, observed: dict[str, ObservedRecord | None]) -> None:
    """Check that every record is found by the hash of its envelope."""
    for execution_id, record in observed.items():
        if record is not None:
            found = store.find_by_hash(store.load(execution_id).header.envelope_hash)
            if execution_id not in found:
                raise FalseAlarm("a record is not found by its hash", execution_id=execution_id)


def _is_pack(name: str) -> bool:
    return name.endswith(".pack")


def _precedence(name: str) -> tuple[int, str]:
    """Sort packs first, the newest last, then compressed files, then the others."""
    return 0 if _is_pack(name) else 1 if name.endswith(".gz") else 2, name


def names_in(files: FileSystem, directory: str) -> list[str]:
    """Return the names in a directory; none if it is missing."""
    return [] if files.kind(directory) is None else files.listdir(directory)


def image_of(files: FileSystem) -> dict[str, bytes]:
    """Return the files of a recording by path."""
    return dict(_image(files))


def _image(files: FileSystem) -> Iterator[tuple[str, bytes]]:
    paths = [f"{place}/{name}" for place in DIRECTORIES for name in names_in(files, place)]
    for path in ["checkpoint", *paths]:
        if path != "wal/current" and files.kind(path) is FileKind.FILE:
            yield path, read_whole(files, path)
