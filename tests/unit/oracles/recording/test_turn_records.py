"""The law of records and turns: complete if and only if a line commits the turn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from gzip import compress
from typing import Any

import pytest

from oracles.recording.turn_records import check_turn_records
from oracles.violation import Duplicated, LostAck, Phantom, TornRecord, Violation
from system.ports import JsonObject
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.stores.record_file import encode_record
from tests.unit.recording.executions import ENVELOPE, EVENTS, finished, memory
from tests.unit.recording.executions import record_events as record

SESSION, TURN = "5" * 32, "b" * 32
LOG = f"agents/{SESSION}/events.jsonl"
REQUEST: JsonObject = {
    **ENVELOPE, "routingMetadata": {"session_id": SESSION, "turn_id": TURN},
}  # fmt: skip


def lines(*written: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(
        json.dumps({"event": event, "data": data}).encode() + b"\n" for event, data in written
    )


def start(execution_id: str) -> tuple[str, dict[str, Any]]:
    return "turn.start", {"turn_id": TURN, "execution_id": execution_id}


COMMIT = ("turn.complete", {"turn_id": TURN, "response": "Hello"})


def complete(**envelope: Any) -> tuple[str, dict[str, bytes]]:
    """Return the id of a complete record, and its file."""
    done = finished(envelope={**REQUEST, **envelope})
    return done.execution_id, {f"records/{done.execution_id}.json": encode_record(done)}


def incomplete() -> tuple[str, dict[str, bytes]]:
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(REQUEST)
    record(recorder, EVENTS[:3])
    return execution_id, {f"records/{execution_id}.json": encode_record(store.load(execution_id))}


def test_a_committed_turn_has_a_complete_record() -> None:
    execution_id, files = complete()
    files[LOG] = lines(start(execution_id), COMMIT)
    assert check_turn_records(files) == 1


def test_an_interrupted_turn_has_an_incomplete_record_or_none() -> None:
    execution_id, files = incomplete()
    files[LOG] = lines(start(execution_id))
    assert check_turn_records(files) == 1
    assert check_turn_records({LOG: files[LOG]}) == 0


def test_an_uncompressed_record_takes_precedence_over_a_compressed_one() -> None:
    execution_id, files = complete()
    _, older = incomplete()
    (path,) = files
    files[f"{path}.gz"] = compress(older[path])
    files[LOG] = lines(start(execution_id), COMMIT)
    assert check_turn_records(files) == 1


def test_a_turn_that_was_sampled_out_has_no_record() -> None:
    start_line = ("turn.start", {"turn_id": TURN, "sampled_out": True})
    assert check_turn_records({LOG: lines(start_line, COMMIT)}) == 0


def test_records_of_excused_sessions_are_not_judged() -> None:
    _, files = complete()
    assert check_turn_records({**files, LOG: b"damaged"}, excused=[SESSION]) == 0


@pytest.mark.parametrize(
    ("files", "log", "violation"),
    [
        ({}, [start("exec-" + "0" * 16), COMMIT], LostAck),
        (complete()[1], [start("exec-" + "0" * 16), COMMIT], LostAck),
        (incomplete()[1], [start(incomplete()[0]), COMMIT], TornRecord),
        (complete()[1], [start(complete()[0]), (COMMIT[0], {**COMMIT[1], "response": "No"})],
         TornRecord),
        (complete()[1], [start(complete()[0]), (COMMIT[0], {**COMMIT[1], "activities": [{}]})],
         TornRecord),
        (complete()[1], [start(complete()[0])], Phantom),
    ],
    ids=["lost", "of another execution", "incomplete", "another response", "other effects",
         "not committed"],
)  # fmt: skip
def test_violations(
    files: dict[str, bytes], log: Sequence[Any], violation: type[Violation]
) -> None:
    with pytest.raises(violation):
        check_turn_records({**files, LOG: lines(*log)})


def test_two_records_of_one_turn_are_a_violation() -> None:
    execution_id, files = complete()
    other = "exec-" + "f" * 16
    clock, ids, store = memory()
    ids.planned = ["f" * 16]
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    assert recorder.start(REQUEST) == other
    files[f"records/{other}.json"] = encode_record(store.load(other))
    files[LOG] = lines(start(execution_id), COMMIT)
    with pytest.raises(Duplicated):
        check_turn_records(files)
