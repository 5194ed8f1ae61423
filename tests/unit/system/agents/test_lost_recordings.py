"""A recording of which files are lost, although turns of sessions show that they existed."""

from __future__ import annotations

from tests.unit.system.agents.room import opened
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


def test_a_missing_checkpoint_is_reported_if_a_turn_was_recorded() -> None:
    room, ada = opened()
    assert room.runtime.report.recording.findings == []
    room.say(ada, "one")
    before = only(room)
    room.run(room.runtime.close())
    room.kill()
    room.host.files.unlink("checkpoint")
    room.open()
    (finding,) = room.runtime.report.recording.findings
    assert finding.startswith("checkpoint: it is missing, or all segments of the log are")
    assert only(room) == before
    room.kill()
    room.open()
    assert room.runtime.report.recording.findings == []
