"""A recording of which files are lost, although turns of sessions show that they existed."""

from __future__ import annotations

import pytest

from system.recording.records.errors import RecordCorruptedError
from system.recording.records.record import ExecutionRecord
from system.recording.stores.record_file import encode_record
from tests.unit.system.agents.room import Room, opened
from tests.unit.system.agents.test_recorded_turns import ATTEMPT, SEGMENT, only, records, types


def test_the_end_of_the_log_is_made_again_from_the_session() -> None:
    room, ada = opened()
    room.say(ada, "one")
    room.say(ada, "two")
    before = {record.execution_id: record for record in records(room)}
    room.kill()
    room.host.files.unlink(f"wal/{SEGMENT}")
    room.open()
    after = {record.execution_id: record for record in records(room)}
    assert set(after) == set(before)
    for execution_id, record in after.items():
        assert record.final_response == before[execution_id].final_response
        assert record.header.envelope_hash == before[execution_id].header.envelope_hash
        assert types(record) == [*ATTEMPT, "FINAL_RESPONSE"]
    neither, *findings = room.runtime.report.recording.findings
    assert neither.startswith("checkpoint: it is missing, or all segments of the log are")
    assert len(findings) == 2
    assert all("its record was made again" in finding for finding in findings)
    room.reopen()
    assert room.runtime.report.recording.findings == []


def without(path: str) -> tuple[Room, ExecutionRecord]:
    """Boot a root that has lost one file; return it, and the record of its turn before that."""
    room, ada = opened()
    assert room.runtime.report.recording.findings == []
    room.say(ada, "one")
    before = only(room)
    room.run(room.runtime.close())
    room.kill()
    room.host.files.unlink(path)
    room.open()
    return room, before


def test_a_missing_checkpoint_is_reported_if_a_turn_was_recorded() -> None:
    room, before = without("checkpoint")
    (finding,) = room.runtime.report.recording.findings
    assert finding.startswith("checkpoint: it is missing, or all segments of the log are")
    assert only(room) == before
    room.kill()
    room.open()
    assert room.runtime.report.recording.findings == []


@pytest.mark.parametrize("content", ["another execution", "damaged"])
def test_a_file_in_the_place_of_a_lost_record_is_put_aside_if_it_is_of_another_execution(
    content: str,
) -> None:
    room, ada = opened()
    room.say(ada, "one")
    room.say(ada, "two")
    one, two = records(room)
    room.kill()
    room.host.files.unlink(f"wal/{SEGMENT}")
    # A damaged file may have been the record, and may have been invalidated.
    data = encode_record(one) if content == "another execution" else b"{"
    path = f"records/{two.execution_id}.json"
    room.write(path, data)
    room.open()
    aside = f"{path}.quarantine.1"
    store = room.runtime.records
    assert store is not None
    if content == "damaged":
        assert not room.exists(aside)
        with pytest.raises(RecordCorruptedError):
            store.load(two.execution_id)
        return
    assert room.read(aside) == data
    assert store.load(two.execution_id).final_response == two.final_response
    findings = room.runtime.report.recording.findings
    assert any(found.startswith(f"{aside}: this record of another exec") for found in findings)
    room.reopen()
    assert room.runtime.report.recording.findings == []


def test_the_record_of_a_committed_turn_is_made_again_if_its_pack_is_missing() -> None:
    room, before = without("records/00000001.pack")
    assert only(room).final_response == before.final_response
    missing, again = room.runtime.report.recording.findings
    assert missing.startswith("records/00000001.pack: the pack is missing")
    assert "its record was made again" in again


@pytest.mark.parametrize("lost", [f"wal/{SEGMENT}", "records/00000001.pack"])
def test_a_record_in_a_file_of_its_own_does_not_hide_the_loss_of_earlier_ones(lost: str) -> None:
    room, ada = opened()
    room.say(ada, "one")
    room.say(ada, "two")
    shown = {str(record.envelope["payload"]): record.execution_id for record in records(room)}
    if lost.endswith(".pack"):
        room.run(room.runtime.close())
        room.reopen()
    store = room.runtime.records
    assert store is not None
    one, two = (next(shown[each] for each in shown if text in each) for text in ("'one'", "'two'"))
    store.invalidate(two, "wrong answer", "Anna")
    room.kill()
    room.host.files.unlink(lost)
    room.open()
    assert {record.execution_id for record in records(room)} == {one, two}
    (again,) = [each for each in room.runtime.report.recording.findings if "made again" in each]
    assert one in again
