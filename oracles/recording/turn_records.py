"""The records of a runtime's turns: the line of a turn is the only commit point.

After a complete recovery, a record has a final response with status ``success`` if and only if
a ``turn.complete`` line names its turn, and that response is the one of the line. It says
IRREVERSIBLE if and only if that line has activities (docs/recording.md, Recorded turns).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from oracles.recording.pack_reader import read_pack
from oracles.recording.record_reader import ObservedRecord, read_record_file
from oracles.violation import Duplicated, LostAck, Phantom, TornRecord

_LOG: Final = re.compile(r"agents/([0-9a-f]{32})/events(\.\d+)?\.jsonl")
_PACK: Final = re.compile(r"records/\d{8}\.pack")
_RECORD: Final = re.compile(r"records/(exec-[0-9a-f]{16}\.json(?:\.gz)?)")


class _Turn(NamedTuple):
    """A committed turn; ``execution_id`` is None if it was sampled out, or is not known."""

    execution_id: str | None
    response: str
    has_activities: bool


def check_turn_records(files: Mapping[str, bytes], excused: Collection[str] = ()) -> int:
    """Compare all records below a root with the logs of its sessions; return their number.

    ``files`` are by path relative to the root, after a recovery without a fault. ``excused`` are
    the sessions that are damaged or cannot be read; their records are not compared.
    """
    turns, sessions = _committed(files, excused)
    records = dict(_records(files, sessions))
    for turn_id, turn in turns.items():
        record = records.get(turn_id)
        if turn.execution_id is None:
            continue
        if record is None or record.execution_id != turn.execution_id:
            raise LostAck(
                "a committed turn has no record",
                turn_id=turn_id, execution_id=turn.execution_id, found=record,
            )  # fmt: skip
        if _text_of(record) != turn.response:
            raise TornRecord(
                "the record of a committed turn has another response",
                turn_id=turn_id, expected=turn.response, found=record.response,
            )  # fmt: skip
        if _is_irreversible(record) is not turn.has_activities:
            raise TornRecord(
                "the record of a turn says something else about its effects than the line",
                turn_id=turn_id, has_activities=turn.has_activities, found=record.response,
            )  # fmt: skip
    for turn_id, record in records.items():
        if turn_id not in turns and _text_of(record) is not None:
            raise Phantom("a record is complete, and no line commits its turn", record=record)
    return len(records)


def _committed(
    files: Mapping[str, bytes], excused: Collection[str]
) -> tuple[dict[str, _Turn], set[str]]:
    """Return the committed turns by id, and the sessions whose logs were read."""
    turns, sessions, executions = dict[str, _Turn](), set[str](), dict[str, str]()
    for path in sorted(files):
        found = _LOG.fullmatch(path)
        if found is None or found[1] in excused:
            continue
        sessions.add(found[1])
        for raw in files[path].splitlines():
            line: dict[str, Any] = json.loads(raw)
            data = line["data"]
            if line["event"] == "turn.start" and "execution_id" in data:
                executions[data["turn_id"]] = data["execution_id"]
            elif line["event"] == "turn.complete":
                turn_id = data["turn_id"]
                turns[turn_id] = _Turn(
                    executions.get(turn_id), data["response"], bool(data.get("activities"))
                )
    return turns, sessions


def _records(
    files: Mapping[str, bytes], sessions: Collection[str]
) -> Iterator[tuple[str, ObservedRecord]]:
    """Yield the records of these sessions by the id of their turn."""
    seen = set[str]()
    for record in _all_records(files).values():
        metadata = json.loads(record.envelope)["routingMetadata"]
        turn_id = metadata["turn_id"]
        if turn_id in seen:
            raise Duplicated("two records are of the same turn", turn_id=turn_id)
        seen.add(turn_id)
        if metadata["session_id"] in sessions:
            yield turn_id, record


def _is_irreversible(record: ObservedRecord) -> bool:
    """Return whether a response says that its turn has effects that cannot be undone."""
    response = json.loads(record.response or b"{}")
    return bool(response["metadata"].get("sideEffectClass") == "IRREVERSIBLE")


def _all_records(files: Mapping[str, bytes]) -> dict[str, ObservedRecord]:
    """Return the records by id.

    A file of its own replaces a pack, a newer pack an older one, and an uncompressed file a
    compressed one.
    """
    records: dict[str, ObservedRecord] = {}
    for path in sorted(files):
        if _PACK.fullmatch(path):
            records |= read_pack(path, files[path])
    for path, content in sorted(files.items(), reverse=True):
        if (found := _RECORD.fullmatch(path)) is not None:
            record = read_record_file(found[1], content)
            records[record.execution_id] = record
    return records


def _text_of(record: ObservedRecord) -> str | None:
    """Return the text of a successful response, or None."""
    if record.response is None:
        return None
    response = json.loads(record.response)
    return str(response["payload"]["response"]) if response["status"] == "success" else None
