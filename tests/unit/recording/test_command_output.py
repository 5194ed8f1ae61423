"""The output of commands: it cannot be written, it is interrupted, it has odd texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from system.host import real_host
from system.recording.open_recording import open_recording
from system.recording.wal_store import WalExecutionRecorder
from tests.meta.source_tree import ROOT
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import run


@pytest.mark.parametrize("command", ["records list", "records show ID", "replay ID", "diff ID ID2"])
def test_an_output_that_is_full_is_a_mistake(root: Path, ids: list[str], command: str) -> None:
    words = command.replace("ID2", ids[1]).replace("ID", ids[0]).split()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "system", *words, "--root", str(root)],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == ("the output: No space left on device; write it to another place\n")


def test_a_replay_that_is_interrupted_exits_with_130(
    root: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_value: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("system.commands.replay.echo_json", interrupt)
    assert invoke(root, "replay", ids[0]).exit_code == 130


def test_a_row_has_one_line_whatever_a_record_has(root: Path, ids: list[str]) -> None:
    async def odd() -> None:
        host = real_host(str(root))
        recording, _ = await open_recording(host)
        recorder = WalExecutionRecorder(host, recording)
        recorder.start({"agent": "Zo\u00eb\n\x1b[31m"})
        await recorder.barrier()

    run(odd())
    result = invoke(root, "records", "list")
    assert len(result.stdout.splitlines()) == len(ids) + 2
    assert "Zo\\xeb\\n\\x1b[31m" in result.stdout
