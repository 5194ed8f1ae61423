"""Files of a newer version of the runtime: the commands do not call them damaged."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest

from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.record_file import encode_record
from system.recording.wal.format import SegmentHeader
from system.storage.codec import seal
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import finished, run
from tests.unit.recording.recording_bench import Bench


def test_a_record_of_a_newer_version(root: Path, ids: list[str]) -> None:
    newer = replace(finished(), version=2).sealed()
    (root / "records" / f"{newer.execution_id}.json").write_bytes(encode_record(newer))
    result = invoke(root, "records", "verify")
    assert f"{newer.execution_id}  of a newer version" in result.stdout
    assert ("start the newer version" in result.stderr, result.exit_code) == (True, 2)
    listed = invoke(root, "records", "list")
    assert (" newer " in listed.stdout, listed.exit_code) == (True, 2)
    (root / "records" / f"{ids[0]}.json").write_bytes(b"")
    assert invoke(root, "records", "verify").exit_code == 1


def put_newer_pack(root: Path) -> Path:
    trailer = struct.pack(">QI5sB", 0, 0, b"SYREC", 2)
    pack = root / "records" / "00000009.pack"
    pack.write_bytes(trailer + struct.pack(">I", crc32(trailer)))
    return pack


def test_a_pack_of_a_newer_version_does_not_replace_the_log(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        execution_id = (await bench.finished()).execution_id
        put_newer_pack(bench.root)
        await bench.open()
        assert bench.store.load(execution_id).execution_id == execution_id

    run(work())


def test_a_pack_of_a_newer_version(root: Path) -> None:
    pack = put_newer_pack(root)
    for command in ("list", "verify"):
        result = invoke(root, "records", command)
        assert "00000009.pack" in result.stderr
        assert "start the newer version" in result.stderr
        assert result.exit_code == 2
    pack.write_bytes(b"")
    assert invoke(root, "records", "list").exit_code == 1


@pytest.mark.parametrize("command", ["records list", "incomplete"])
def test_a_root_of_a_newer_version_is_a_mistake(root: Path, command: str) -> None:
    (root / "root.json").write_bytes(seal({"format": 3, "made_by": "powercut"}) + b"\n")
    result = invoke(root, *command.split())
    assert "root.json: it has format=3" in result.stderr
    assert ("start the newer version" in result.stderr, result.exit_code) == (True, 2)
    (root / "root.json").write_bytes(b"?")
    assert invoke(root, *command.split()).exit_code == 0


def test_a_later_version_of_the_log_is_a_mistake(root: Path) -> None:
    (root / "wal" / "00000009.wal").write_bytes(SegmentHeader(1, 1, 2).encoded())
    result = invoke(root, "records", "list")
    assert ("start the newer version" in result.stderr, result.exit_code) == (True, 2)


def test_a_record_that_a_pack_of_a_newer_version_may_have_is_not_lost(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        store = FileExecutionStore(bench.host)
        assert not store.has("exec-" + "0" * 16)
        (bench.root / "records").mkdir()
        put_newer_pack(bench.root)
        assert FileExecutionStore(bench.host).has("exec-" + "0" * 16)

    run(work())
