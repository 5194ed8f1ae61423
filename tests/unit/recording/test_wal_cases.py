"""Recovery of a write-ahead log as text cases: the files that a crash left, then the result.

Input, a line each:

    segment 2 first=7         begins wal/00000002.wal with its header; the first entry has number 7
    start a                   the next entry: that of the start of execution a
    intent a, route a, attempt a, ended a, fallback a, final a, failed a
                              the next event of a
    mark a, lose a            the reason "marked", or that of a failed recording
    ... durable=3 n=2 seq=9   that entry with these members; later numbers go on behind it
    damaged start a           the entry with one byte changed
    9 bytes of start a        its first bytes
    80 zeros                  NULs
    raw b'...'                these bytes
    damaged header            the header of the segment with one byte changed
    checkpoint 7 segment=2 pack=3
                              the file of the checkpoint; ``damaged checkpoint 7`` likewise
    no records                removes the directory of the records, which is empty
    snapshot a intent route   the snapshot of an execution with these events, in pack 3
    snapshot 4 a intent       the same in pack 4; ``damaged snapshot a`` has one byte changed
    pack 3 a intent final     a pack of records that has this one
    record a final            the record of an execution; ``record a invalidated`` likewise
    file wal/notes.txt        a file with other content
    link wal/current target   a symbolic link

The output has the report, the records, and the names of all files. A second recovery must
change nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from system.errors import StorageError
from system.host import real_host
from system.ports import JsonObject, SideEffectClass
from system.recording.executions.entry_type import ENTRY_OF_EVENT, EntryType
from system.recording.executions.execution import Execution
from system.recording.executions.log_record import encoded_log_record, end_of_log_record
from system.recording.open_recording import open_recording
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.errors import RecordCorruptedError
from system.recording.records.event import EventType
from system.recording.records.invalidation import invalidated
from system.recording.stores.pack import pack_pieces
from system.recording.stores.record_file import encode_record
from system.recording.wal.checkpoint import read_checkpoint
from system.recording.wal.format import SegmentHeader, encode_entry, segment_name
from system.recording.wal.report import WalReport
from system.recording.wal_store import WalExecutionStore
from system.storage.codec import canonical, seal
from tests.unit.recording.executions import CountingClock, run
from tests.unit.system.text_cases import Case, check_cases

CASES: Final = Path(__file__).parent / "wal_cases"
EVENTS: Final[dict[str, tuple[EventType, JsonObject]]] = {
    "intent": (EventType.INTENT_RECEIVED, {}),
    "route": (EventType.ROUTER_DECISION, {"name": "Ada"}),
    "attempt": (EventType.AGENT_ATTEMPT_START, {"attempt": 1}),
    "ended": (EventType.AGENT_ATTEMPT_END, {"status": "success"}),
    "fallback": (EventType.FALLBACK_TRIGGERED, {"to": None}),
    "final": (EventType.FINAL_RESPONSE, {"status": "success", "payload": "done"}),
    "failed": (EventType.FINAL_RESPONSE, {"status": "error", "payload": None}),
}
_ENTRY: Final = re.compile(
    r"(?:(?P<take>\d+) bytes of |(?P<damaged>damaged) )?"
    r"(?P<what>start|mark|lose|part|" + "|".join(EVENTS) + r") "
    r"(?P<x>[a-f])(?P<members>(?: \w+=\d+)*)"
)


def execution_id(letter: str) -> str:
    return f"exec-{letter * 16}"


def new_execution(letter: str) -> Execution:
    envelope = FrozenEnvelope.of({"agent": letter})
    clock = CountingClock()
    return Execution.new(clock, execution_id(letter), envelope, SideEffectClass.REVERSIBLE, None)


def start_of(letter: str) -> bytes:
    """Return the payload of the start of an execution."""
    parsed = new_execution(letter).log_records.recent[0].parsed()
    assert parsed is not None
    return parsed.payload


def executed(words: Sequence[str]) -> Execution:
    """Return an execution, of a letter, with these events."""
    execution = new_execution(words[0])
    for what in (each for each in words[1:] if each in EVENTS):
        event_type, value = EVENTS[what]
        is_final = event_type is EventType.FINAL_RESPONSE
        next_log_record = partial(execution.next_event, event_type)
        execution.add(execution.final_event(value) if is_final else next_log_record(value))
    if "lose" in words:
        execution.lose_events()
    return execution


class Builder:
    """Writes the files of a case below a root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "no segment"
        self.header = SegmentHeader(1, 0)
        self.sequence = 0
        self.numbers: dict[str, int] = {}

    def add(self, line: str) -> None:
        word, _, more = line.partition(" ")
        if (found := _ENTRY.fullmatch(line)) is not None:
            self._add_entry(found)
        elif line == "damaged header":
            content = self.path.read_bytes()
            self.path.write_bytes(content[:8] + b"\xff" + content[9:])
        elif word == "segment":
            self._begin_segment(more)
        elif zeros := re.fullmatch(r"(\d+) zeros", line):
            self._append(bytes(int(zeros[1])))
        elif line == "no records":
            (self.root / "records").rmdir()
        elif word == "raw":
            self._append(ast.literal_eval(more))
        elif word == "file":
            self._write(more, b"other content")
        elif word == "link":
            path, target = more.split()
            (self.root / path).symlink_to(target)
        else:
            self._add_file(line)

    def _begin_segment(self, text: str) -> None:
        number, _, members = text.partition(" first=")
        first, _, version = members.partition(" version=")
        self.header = SegmentHeader(int(first), int(number) * 1000, int(version or "1"))
        self.sequence = int(first) - 1
        self.path = self._write(f"wal/{segment_name(int(number))}", self.header.encoded())

    def _add_entry(self, found: re.Match[str]) -> None:
        members = {
            name: int(value)
            for name, _, value in (each.partition("=") for each in found["members"].split())
        }
        letter, what, entry_type = found["x"], found["what"], 0
        self.sequence = members.get("seq", self.sequence + 1)
        number = self.numbers.get(letter, 0)
        if what == "start":
            entry_type, payload = EntryType.START, start_of(letter)
        elif what == "mark":
            entry_type, payload = EntryType.NOT_REPLAYABLE, canonical("marked")
        elif what == "lose":
            entry_type, payload = EntryType.NOT_REPLAYABLE, canonical("recording_failure")
        elif what == "part":
            entry_type, payload = EntryType.PART, b"{}"
        else:
            number += 1
            event_type, value = EVENTS[what]
            entry_type, payload = ENTRY_OF_EVENT[event_type], canonical(value)
        self.numbers[letter] = number = members.get("n", number)
        now = new_execution(letter).now()
        encoded = encoded_log_record(number, payload, end_of_log_record(execution_id(letter), now))
        if "durable" in members:
            encoded = b'{"durable":%d,' % members["durable"] + encoded[1:]
        entry = encode_entry(entry_type, self.sequence, encoded, self.header.crc)
        if found["damaged"]:
            entry = entry[:-1] + b"?"
        self._append(entry[: int(found["take"])] if found["take"] else entry)

    def _add_file(self, line: str) -> None:
        damaged = line.startswith("damaged ")
        word, *more = line.removeprefix("damaged ").split()
        if word == "checkpoint":
            numbers = {"segment": 1, "pack": 3}
            numbers |= {name: int(value) for name, _, value in (m.partition("=") for m in more[1:])}
            members: JsonObject = {"v": 1, "sequence": int(more[0]), **numbers}
            name, content = word, seal(members) + b"\n"
        elif word == "record":
            record = executed(more).record()
            if "invalidated" in more:
                record = invalidated(record, "wrong", "Ada", CountingClock())
            name, content = f"records/{record.execution_id}.json", encode_record(record)
        else:
            number = int(more.pop(0)) if more[0].isdigit() else 3
            name = f"{'snapshots' if word == 'snapshot' else 'records'}/{number:08d}.pack"
            content = b"".join(pack_pieces([executed(more).view()]))
        if word != "checkpoint":
            self.numbers[more[0]] = executed(more).event_count
        if damaged:
            content = content[:20] + bytes([content[20] ^ 1]) + content[21:]
        self._write(name, content)

    def _write(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def _append(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)


def reported(report: WalReport) -> Iterator[str]:
    """Yield a report; values that say nothing are left out."""
    members = [f"segments={report.segments}", f"entries={report.entries}"]
    if report.torn_bytes:
        members.append(f"torn_bytes={report.torn_bytes}")
    members += [f"missing={first}-{last}" for first, last in report.missing]
    members += [f"corrupted={each[5]}" for each in report.corrupted]
    yield " ".join(members)
    for damage in report.damaged:
        tail = " tail" if damage.tail else ""
        reason = re.sub("[0-9a-f]{8}", "<crc>", damage.reason)
        yield f"damaged {damage.path} {damage.offset}+{damage.size_bytes}{tail}: {reason:.90}"
    yield from (*report.findings, *report.foreign)
    yield from (f"swept {path}" for path in report.swept)


def records(store: WalExecutionStore) -> Iterator[str]:
    """Yield the records of a store, one a line."""
    for each in store.list_all():
        try:
            record = store.load(each)
        except RecordCorruptedError as corrupted:
            yield f"record {each[5]}: corrupted: {corrupted.problems[0]:.70}"
            continue
        types = " ".join(event.type for event in record.events)
        reason = record.header.replayable_reason or "replayable"
        yield f"record {each[5]}: {reason} {types}".rstrip()


def files_below(root: Path) -> dict[str, bytes]:
    """Return the content of all files; links are left out."""
    paths = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


async def recovered(root: Path) -> tuple[str, ...]:
    """Recover the files below ``root``; return the output."""
    before = files_below(root)
    host = real_host(str(root))
    try:
        recording, log = await open_recording(host)
    except StorageError as refused:
        assert files_below(root) == before
        return (f"refused: {type(refused).__name__}: {refused.path}: {refused.reason}",)
    store = WalExecutionStore(recording, host.clock)
    output = [*reported(log.report), *records(store)]
    after = files_below(root)
    checkpoint = read_checkpoint(host.files, "checkpoint").sequence
    if "checkpoint" in after:
        output.append(f"checkpoint {checkpoint}")
    output += [name for name in after if not name.startswith("records/") and name != "checkpoint"]
    again, second = await open_recording(host)
    assert files_below(root) == after
    assert (second.report.damaged, second.report.missing, second.report.torn_bytes) == ([], [], 0)
    assert list(records(WalExecutionStore(again, host.clock))) == list(records(store))
    assert second.last == checkpoint
    assert second.missing_paths == ()
    return tuple(output)


def checked(case: Case, root: Path) -> tuple[str, ...]:
    """Write the files of a case below ``root`` and recover them."""
    (root / "records").mkdir(parents=True)
    builder = Builder(root)
    for line in case.given:
        builder.add(line)
    return run(recovered(root))


@pytest.mark.parametrize("path", sorted(CASES.glob("*.txt")), ids=lambda path: path.stem)
def test_recovery_of_a_write_ahead_log(
    path: Path, tmp_path: Path, subtests: pytest.Subtests, request: pytest.FixtureRequest
) -> None:
    roots = (tmp_path / str(number) for number in range(10_000))
    rewrite = bool(request.config.getoption("--rewrite-cases"))
    check_cases(path, lambda case: checked(case, next(roots)), subtests, rewrite=rewrite)
