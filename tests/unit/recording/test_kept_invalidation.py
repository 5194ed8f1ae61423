"""An invalidation cannot be undone, also not by a save of a copy that was read before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system.recording.records.errors import RecordCorruptedError
from system.recording.records.record import ExecutionRecord
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.record_file import encode_record
from system.recording.stores.store import ExecutionStore
from tests.unit.recording.executions import finished, memory, run
from tests.unit.recording.recording_bench import Bench


def check(store: ExecutionStore, valid: ExecutionRecord) -> ExecutionRecord:
    """Save copies over an invalidated record; return the record that the store has then."""
    invalidated = store.invalidate(valid.execution_id, "wrong", "Ada")
    store.save(valid)
    assert store.load(valid.execution_id) == invalidated
    assert store.hash_of(valid.execution_id) == invalidated.header.record_hash
    store.save(invalidated)
    assert store.load(valid.execution_id) == invalidated
    # Another copy, which has another reason and was invalidated elsewhere.
    elsewhere = memory()[-1]
    header = replace(valid.header, replayable=False, replayable_reason="uses a clock")
    elsewhere.save(replace(valid, header=header).sealed())
    store.save(elsewhere.invalidate(valid.execution_id, "other", "Bob"))
    last = store.load(valid.execution_id)
    assert last.header.invalidation is not None
    assert last.header.invalidation.reason == "wrong"
    assert last.header.invalidation.earlier == "uses a clock"
    return last


def test_a_save_in_memory_keeps_an_invalidation() -> None:
    store = memory()[-1]
    store.save(finished())
    check(store, finished())


@pytest.mark.parametrize("compressed", [False, True])
def test_a_save_in_a_file_keeps_an_invalidation(bench: Bench, compressed: bool) -> None:
    store = FileExecutionStore(bench.host, compressed=compressed)
    store.save(finished())
    check(store, finished())


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_save_in_a_recording_keeps_an_invalidation(bench: Bench, is_waiting: bool) -> None:
    async def work() -> None:
        await bench.open()
        valid = await bench.finished()
        if not is_waiting:
            await bench.recording.checkpoint()
        last = check(bench.store, valid)
        await bench.open()
        assert bench.store.load(valid.execution_id) == last

    run(work())


@pytest.mark.parametrize("is_readable", [False, True])
def test_the_invalidation_of_a_damaged_file_is_kept_if_it_can_be_read(
    bench: Bench, is_readable: bool
) -> None:
    store, valid = FileExecutionStore(bench.host), finished()
    store.save(valid)
    content = encode_record(store.invalidate(valid.execution_id, "wrong", "Ada"))
    damaged = content.replace(b'"seq":2', b'"seq":7') if is_readable else content[:-3]
    (bench.root / "records" / f"{valid.execution_id}.json").write_bytes(damaged)
    with pytest.raises(RecordCorruptedError):
        store.load(valid.execution_id)
    store.save(valid)
    assert store.load(valid.execution_id).header.replayable != is_readable
