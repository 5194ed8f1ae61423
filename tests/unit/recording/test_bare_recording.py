"""The commands on a directory that was recorded without a runtime."""

from __future__ import annotations

import json
from pathlib import Path

from system.host import real_host
from system.recording.open_recording import open_recording
from system.recording.wal_store import WalExecutionRecorder
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import ENVELOPE, EVENTS, RESPONSE, record_events, run


def test_its_records_are_listed_shown_and_verified(tmp_path: Path) -> None:
    async def recorded() -> tuple[str, str]:
        host = real_host(str(tmp_path))
        recording, _ = await open_recording(host)
        ended, begun = (WalExecutionRecorder(host, recording) for _ in range(2))
        ids = ended.start(ENVELOPE), begun.start(ENVELOPE)
        record_events(ended, EVENTS)
        await ended.finalize(RESPONSE)
        recording.log.close()
        return ids

    ended, begun = run(recorded())
    listed = json.loads(invoke(tmp_path, "records", "list", "--json").stdout)
    assert {row["executionId"]: row["status"] for row in listed} == {
        ended: "completed", begun: "incomplete",
    }  # fmt: skip
    assert f"{ended}  sound" in invoke(tmp_path, "records", "verify").stdout
    assert json.loads(invoke(tmp_path, "records", "show", ended).stdout)["finalResponse"]
    assert begun in invoke(tmp_path, "incomplete").stdout
    refused = invoke(tmp_path, "records", "invalidate", ended, "--reason", "wrong", "--by", "Ada")
    assert refused.exit_code == 2
    assert "it holds no root.json; name a root of this runtime" in refused.stderr
