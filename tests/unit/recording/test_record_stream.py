"""Long records are read in pieces, in constant memory, and damage is found before the first."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from system.errors import NewerFormat
from system.recording.records.errors import ForeignRecordFile, RecordCorruptedError
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.record import ExecutionRecord
from system.recording.replays.replay import replay
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.gzip_data import compressed
from system.recording.stores.record_file import encode_record
from tests.unit.recording.executions import RESPONSE, finished
from tests.unit.recording.recording_bench import Bench

ID = finished().execution_id


def long_record(pieces: int, characters: int, text: str = "\n " * 9) -> ExecutionRecord:
    """A record with many events between an attempt and its end, and a long response."""
    record = finished({"status": "success", "payload": "x" * characters})
    first, *others = record.events
    odd = [
        replace(first, seq=seq, type="NEWS", frozen_payload=FrozenJson.of({"n": text}))
        for seq in range(2, pieces + 2)
    ]
    following = [replace(event, seq=event.seq + pieces) for event in others]
    return replace(record, events=(first, *odd, *following)).sealed()


@pytest.mark.parametrize("piece_bytes", [257, 300, 1000, 1 << 20])
def test_a_record_is_read_in_pieces(
    bench: Bench, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("system.recording.stores.record_stream.PIECE_BYTES", piece_bytes)
    store = FileExecutionStore(bench.host)
    record = long_record(20, 3000)
    record = replace(record, others=FrozenJson.of({"tags": ["a"], "zz": 1})).sealed()
    store.save(record)
    assert tuple(store.stream_events(ID)) == record.events
    pieces = list(store.stream_response(ID))
    assert json.loads(b"".join(pieces)) == record.final_response
    assert all(0 < len(piece) <= piece_bytes for piece in pieces)


def test_a_record_without_a_response_or_events_yields_nothing(bench: Bench) -> None:
    store = FileExecutionStore(bench.host)
    store.save(replace(finished(), events=(), frozen_response=None).sealed())
    assert list(store.stream_events(ID)) == []
    assert list(store.stream_response(ID)) == []


def test_damage_is_found_before_the_first_piece(bench: Bench, tmp_path: Path) -> None:
    store = FileExecutionStore(bench.host)
    store.save(finished())
    path = tmp_path / "records" / f"{ID}.json"
    content = path.read_bytes()
    unhashed = content.replace(b"recordHash", b"recordHasi")
    for damaged in (content.replace(b"Hello", b"Hullo", 1), content[:-30], unhashed, b""):
        path.write_bytes(damaged)
        for stream in (store.stream_events(ID), store.stream_response(ID)):
            with pytest.raises(RecordCorruptedError):
                next(stream)
    path.write_bytes(content.replace(b'  "header": {', b'  "header": {{'))
    with pytest.raises(RecordCorruptedError, match="its header cannot be read"):
        next(store.stream_events(ID))


def test_bytes_behind_a_compressed_record_are_found_by_every_call(
    bench: Bench, tmp_path: Path
) -> None:
    store = FileExecutionStore(bench.host, compressed=True)
    path = tmp_path / store.save(finished())
    for behind in (b"x", b"x" * (2 << 20)):
        path.write_bytes(compressed(encode_record(finished())) + behind)
        for read in (store.load, lambda key: [*store.stream_events(key)],
                     lambda key: [*store.stream_response(key)]):  # fmt: skip
            with pytest.raises(RecordCorruptedError, match="bytes behind the end of the gzip"):
                read(ID)
        forced = replay(store, ID, force=True)
        assert (forced.response, len(forced.warnings)) == (RESPONSE, 1)


def test_a_record_that_load_refuses_is_not_read_in_pieces(bench: Bench, tmp_path: Path) -> None:
    store = FileExecutionStore(bench.host)
    path = tmp_path / store.save(finished())
    other = "exec-" + "1" * 16
    path.rename(tmp_path / "records" / f"{other}.json")
    for stream in (store.stream_events(other), store.stream_response(other)):
        with pytest.raises(ForeignRecordFile, match=f"it is the record of {ID}"):
            next(stream)
    path.write_bytes(encode_record(replace(finished(), version=2).sealed()))
    for stream in (store.stream_events(ID), store.stream_response(ID)):
        with pytest.raises(NewerFormat, match="v=2, known is v=1"):
            next(stream)


def test_many_events_need_little_memory(bench: Bench, tmp_path: Path) -> None:
    store = FileExecutionStore(bench.host)
    (tmp_path / "records").mkdir()
    record = long_record(2000, 1, "x" * 12_000)
    (tmp_path / "records" / f"{ID}.json").write_bytes(encode_record(record))
    del record
    tracemalloc.start()
    assert sum(1 for _ in store.stream_events(ID)) == 2005
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_long_record_needs_little_memory(bench: Bench, tmp_path: Path) -> None:
    store = FileExecutionStore(bench.host)
    (tmp_path / "records").mkdir()
    record = long_record(2000, 24 << 20)
    (tmp_path / "records" / f"{ID}.json").write_bytes(encode_record(record))
    del record
    tracemalloc.start()
    size = sum(map(len, store.stream_response(ID)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 24 << 20
    assert peak < 8 << 20
