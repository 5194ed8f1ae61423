"""A store saves no record that it would not return, and none over one of a later version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system.errors import NewerFormat
from system.recording.records.errors import UnsoundRecord
from system.recording.records.record import ExecutionRecord
from system.recording.records.record_members import from_dict
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.record_file import encode_record
from system.recording.stores.store import ExecutionStore
from tests.unit.recording.executions import finished, memory, run
from tests.unit.recording.recording_bench import Bench
from tests.unit.recording.test_record import foreign

SOUND = finished()
PATH = f"records/{SOUND.execution_id}.json"


def with_id(execution_id: str) -> ExecutionRecord:
    """Return a record whose hashes hold, and whose id may be none."""
    return replace(SOUND, header=replace(SOUND.header, execution_id=execution_id)).sealed()


UNSOUND = {
    "path": with_id("../escaped"),
    "digits": with_id("exec-ABC"),
    "envelope": replace(SOUND, header=replace(SOUND.header, envelope_hash="sha256:" + "0" * 64)),
    "events": replace(SOUND, events=SOUND.events[:2]),
    "unsealed": replace(SOUND, header=replace(SOUND.header, record_hash=None)),
    "version": replace(SOUND, version=2).sealed(),
}


def stores(bench: Bench) -> list[ExecutionStore]:
    run(bench.open())
    return [FileExecutionStore(bench.host), bench.store, memory()[-1]]


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_record_is_not_saved(bench: Bench, name: str) -> None:
    for store in stores(bench):
        store.save(SOUND)
        before = bench.names(), bench.names("records")
        with pytest.raises(UnsoundRecord, match="nothing was written; save a record as") as refused:
            store.save(UNSOUND[name])
        assert refused.value.problems
        assert (bench.names(), bench.names("records")) == before
        assert list(store.list_all()) == [SOUND.execution_id]
        assert store.load(SOUND.execution_id) == SOUND


def test_a_record_of_another_program_is_saved(bench: Bench) -> None:
    other = from_dict(foreign(SOUND.to_dict()))
    for store in stores(bench):
        store.save(other)
        assert store.load(other.execution_id) == other


@pytest.mark.parametrize("compressed", [False, True])
def test_a_record_of_a_later_version_is_not_replaced(bench: Bench, compressed: bool) -> None:
    run(bench.open())
    content = encode_record(replace(SOUND, version=2).sealed())
    FileExecutionStore(bench.host).save(SOUND)
    (bench.root / PATH).write_bytes(content)
    for store in (FileExecutionStore(bench.host, compressed=compressed), bench.store):
        with pytest.raises(NewerFormat, match="v=2, known is v=1; start the newer version"):
            store.save(SOUND)
        with pytest.raises(NewerFormat):
            store.invalidate(SOUND.execution_id, "wrong", "Ada")
        assert bench.names("records") == [f"{SOUND.execution_id}.json"]
        assert (bench.root / PATH).read_bytes() == content
