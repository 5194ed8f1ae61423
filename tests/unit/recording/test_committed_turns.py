"""A kill between the line of a turn and its final response: the execution is committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oracles.recording.wal_reader import log_record_of, read_segment
from system.host import real_host
from system.recording.executions.entry_type import EntryType
from system.runtime import Runtime
from tests.unit.recording.command_root import invoke, team
from tests.unit.recording.executions import run
from tests.unit.recording.recording_bench import SEGMENT


@pytest.fixture
def killed(tmp_path: Path) -> tuple[Path, str]:
    """Return a root whose last turn is committed, and its execution, which has no response."""
    root = tmp_path / "killed"
    run(team(root, kill=True))
    path = root / "wal" / SEGMENT
    segment = read_segment(path.read_bytes())
    assert segment is not None
    last = segment.entries[-1]
    assert last.entry_type == EntryType.FINAL_RESPONSE
    path.write_bytes(path.read_bytes()[: last.start])
    return root, log_record_of(last).execution_id


def listed(root: Path, *options: str) -> list[Any]:
    found: list[Any] = json.loads(invoke(root, "incomplete", "--json", *options).stdout)
    return found


def test_a_committed_execution_needs_no_action(killed: tuple[Path, str]) -> None:
    root, execution_id = killed
    result = invoke(root, "incomplete")
    assert (result.exit_code, result.stderr) == (0, "")
    row = result.stdout.splitlines()[1].split()
    assert row[:4] == [execution_id, "committed", "complete_record", "none"]
    (each,) = listed(root)
    assert (each["stage"], each["action"], each["retriedBy"]) == ("committed", "none", None)
    assert each["agent"]

    async def recovered() -> None:
        runtime = await Runtime.recover(real_host(str(root)), {})
        assert runtime.report.incomplete == []
        assert runtime.records is not None
        response = runtime.records.load(execution_id).final_response
        assert response is not None
        assert response["status"] == "success"
        await runtime.close()

    run(recovered())
    assert invoke(root, "incomplete").output == ""


@pytest.mark.parametrize("removed", [b'"turn.complete"', b'"turn.start"'])
def test_an_execution_whose_turn_has_no_line_was_interrupted(
    killed: tuple[Path, str], removed: bytes
) -> None:
    root, execution_id = killed
    (log,) = root.glob("agents/*/events.jsonl")
    lines = log.read_bytes().splitlines(keepends=True)
    (*_, last) = (number for number, line in enumerate(lines) if removed in line)
    log.write_bytes(b"".join([*lines[:last], *lines[last + 1 :]]))
    assert invoke(root, "incomplete").exit_code == 1
    assert [(each["executionId"], each["action"]) for each in listed(root)] == [
        (execution_id, "retry")
    ]


def test_a_log_of_a_session_that_cannot_be_read_shows_no_turn(killed: tuple[Path, str]) -> None:
    root, execution_id = killed
    (log,) = root.glob("agents/*/events.jsonl")
    log.unlink()
    log.mkdir()
    assert invoke(root, "incomplete").exit_code == 1
    assert [each["executionId"] for each in listed(root)] == [execution_id]
