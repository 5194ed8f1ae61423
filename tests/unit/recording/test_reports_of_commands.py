"""Commands on a root with damage, with foreign files, and with JSON as output."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from system.cli import cli
from system.recording.open_recording import open_recording
from system.recording.records.errors import PackCorruptedError, RecordCorruptedError
from system.recording.records.frozen_json import FrozenJson
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import finished, run
from tests.unit.recording.recording_bench import Bench
from tests.unit.recording.test_command_output import save
from tests.unit.recording.test_commands import interrupted, spoil

REPORTING = pytest.mark.parametrize("command", ["records list", "records verify", "incomplete"])
MOVE = "it is no part of the log, and was left; move it out of the directory"
REPLACED = "it is no link to a segment; the next segment replaces it"


def invalidate(root: Path, execution_id: str) -> Result:
    arguments = ["records", "invalidate", execution_id, "--reason", "wrong", "--by", "Ada"]
    return CliRunner().invoke(cli, [*arguments, "--root", str(root)])


def damage_log(root: Path) -> str:
    """Damage the start of an interrupted execution in the log; return its id."""
    execution_id = run(interrupted(root))
    (segment,) = (root / "wal").glob("*.wal")
    segment.write_bytes(segment.read_bytes().replace(b'{"envelope"', b'{"envelopE"'))
    return execution_id


def test_an_invalidation_lists_the_damage_that_its_recovery_has_found(
    root: Path, ids: list[str]
) -> None:
    lost = damage_log(root)
    done = invalidate(root, ids[0])
    assert (done.exit_code, done.stdout) == (1, f"invalidated {ids[0]}\n")
    quarantined, missing, corrupted = done.stderr.splitlines()
    assert "damaged bytes at offset 26 were put aside in wal/" in quarantined
    assert missing.startswith("recording: entries are missing: ")
    assert corrupted == f"execution {lost}: damage has taken a part of its record"
    again = invalidate(root, ids[0])
    assert (again.exit_code, again.stderr) == (0, "")


def test_an_invalidation_of_an_unknown_record_lists_the_damage_too(root: Path) -> None:
    damage_log(root)
    refused = invalidate(root, "exec-" + "0" * 16)
    assert refused.exit_code == 2
    assert "damaged bytes at offset 26 were put aside in wal/" in refused.stderr
    assert "there is no record of execution" in refused.stderr


def test_an_invalidation_after_a_crash_finds_no_damage(root: Path, ids: list[str]) -> None:
    run(interrupted(root))
    done = invalidate(root, ids[0])
    assert (done.exit_code, done.stderr) == (0, "")


@REPORTING
def test_a_foreign_file_is_named_and_no_damage(root: Path, command: str) -> None:
    for directory in ("wal", "snapshots"):
        (root / directory).mkdir(exist_ok=True)
        (root / directory / "notes.txt").touch()
    (root / "wal" / "current").write_text("00000001.wal")
    result = invoke(root, *command.split())
    assert result.exit_code == 0
    assert sorted(result.stderr.splitlines()) == [
        f"snapshots/notes.txt: {MOVE}", f"wal/current: {REPLACED}", f"wal/notes.txt: {MOVE}"
    ]  # fmt: skip


@REPORTING
def test_a_record_that_the_disk_refuses_is_named_and_the_others_are_read(
    root: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert invalidate(root, ids[0]).exit_code == 0
    pread = os.pread

    def refusing(descriptor: int, size_bytes: int, offset: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(f"{ids[0]}.json"):
            raise OSError(errno.EIO, "Input/output error")
        return pread(descriptor, size_bytes, offset)

    monkeypatch.setattr(os, "pread", refusing)
    found = invoke(root, *command.split())
    assert found.exit_code == 1
    assert found.stderr == (
        f"execution {ids[0]}: Input/output error; repair the disk and repeat the call\n"
    )
    assert command == "incomplete" or ids[1] in found.stdout


@REPORTING
def test_a_pack_that_the_disk_refuses_is_named_and_other_files_are_read(
    root: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert invalidate(root, ids[0]).exit_code == 0
    opened = os.open

    def refusing(path: str, *arguments: int) -> int:
        if path.endswith(".pack"):
            raise OSError(errno.EACCES, "Permission denied")
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", refusing)
    found = invoke(root, *command.split())
    assert found.exit_code == 1
    assert found.stderr == (
        "records/00000001.pack: it cannot be read (Permission denied); records that are found can"
        " be used; the sessions' logs have the other responses\n"
    )
    assert command == "incomplete" or ids[0] in found.stdout
    shown = invoke(root, "records", "show", ids[1])
    assert (shown.exit_code, shown.stderr) == (1, found.stderr)


def test_a_recovery_names_foreign_files_and_has_lost_nothing(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        await bench.recording.close()
        (bench.root / "wal" / "current").mkdir()
        (bench.root / "wal" / "notes.txt").touch()
        _, log = await open_recording(bench.host)
        assert log.report.lost_nothing
        assert log.report.foreign == [f"wal/current: {MOVE}", f"wal/notes.txt: {MOVE}"]

    run(work())


def test_a_file_in_the_place_of_the_link_is_replaced_by_the_next_segment(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        await bench.recording.close()
        (bench.root / "wal" / "current").write_text("00000001.wal")
        await bench.open()
        assert bench.log.report.foreign == [f"wal/current: {REPLACED}"]
        await bench.finished()
        assert (bench.root / "wal" / "current").is_symlink()

    run(work())


def test_an_invalidation_names_foreign_files(root: Path, ids: list[str]) -> None:
    (root / "wal" / "notes.txt").touch()
    done = invalidate(root, ids[0])
    assert (done.exit_code, done.stderr) == (0, f"wal/notes.txt: {MOVE}\n")


def test_an_unknown_id_in_a_root_without_its_pack_has_the_remedy_of_a_pack(root: Path) -> None:
    (root / "records" / "00000001.pack").unlink()
    result = invoke(root, "replay", "exec-" + "0" * 16)
    assert result.exit_code == 1
    assert result.stderr.endswith(f"; {PackCorruptedError.cure}\n")
    assert RecordCorruptedError.cure not in result.stderr


@REPORTING
def test_each_damage_has_a_remedy(root: Path, command: str) -> None:
    damage_log(root)
    (root / "records" / "00000001.pack").unlink()
    lines = invoke(root, *command.split()).stderr.splitlines()
    logs = "the sessions' logs have the responses of their turns"
    for problem, cure in (
        ("damaged bytes at offset", "puts them aside, and serves the other executions"),
        ("recording: entries are missing: ", logs),
        ("the pack is missing", logs),
    ):
        (line,) = (each for each in lines if problem in each)
        assert line.endswith(cure)


def test_a_verification_is_printed_as_json(root: Path, ids: list[str]) -> None:
    spoil(root, ids[0])
    record = finished()
    news = replace(record.events[3], type="A\nB")
    odd = replace(record, events=(*record.events[:3], news, *record.events[4:])).sealed()
    save(root, odd)
    result = invoke(root, "records", "verify", "--json")
    assert result.exit_code == 1
    sound = {"status": "sound", "coverage": "record", "function": "hash version 2"}
    found = {each.pop("executionId"): each for each in json.loads(result.stdout)}
    assert list(found) == sorted([odd.execution_id, *ids])
    assert found == {
        odd.execution_id: {**sound, "unknownEvents": ["A\nB"]},
        ids[0]: {"status": "damaged"},
        ids[1]: {**sound, "unknownEvents": []},
    }


@REPORTING
@pytest.mark.parametrize("path", ["checkpoint", "records"])
@pytest.mark.usefixtures("ids")
def test_a_command_that_can_read_nothing_prints_an_empty_list(
    root: Path, command: str, path: str
) -> None:
    (root / path).rename(root / "moved")
    (root / path).mkdir() if path == "checkpoint" else (root / path).touch()
    result = invoke(root, *command.split(), "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (1, [])
    assert result.stderr.startswith(f"{path}: it is not a ")
    plain = invoke(root, *command.split())
    assert (plain.exit_code, plain.stdout, plain.stderr) == (1, "", result.stderr)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_records_that_cannot_be_compared_are_no_difference(
    root: Path, ids: list[str], more: tuple[str, ...]
) -> None:
    spoil(root, ids[0])
    for pair in (ids, reversed(ids)):
        result = invoke(root, "diff", *pair, *more)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{ids[0]}.json" in result.stderr
    (root / "checkpoint").unlink()
    (root / "checkpoint").mkdir()
    assert invoke(root, "diff", *ids, *more).exit_code == 2


def test_differences_are_printed_as_json(root: Path) -> None:
    one = finished()
    route = replace(one.events[1], frozen_payload=FrozenJson.of({"agent": [1]}))
    header = replace(one.header, execution_id="exec-" + "2" * 16)
    two = replace(one, header=header, events=(one.events[0], route, *one.events[2:])).sealed()
    save(root, one, two)
    result = invoke(root, "diff", one.execution_id, two.execution_id, "--json")
    assert result.exit_code == 1
    found = {each.pop("path"): each for each in json.loads(result.stdout)}
    assert found["routerDecision.agent"] == {"before": "a" * 32, "after": [1]}
    assert found["routerDecision.name"] == {"before": "Ada"}
    assert found["routerDecision.retryOf"] == {"before": None}
    equal = invoke(root, "diff", one.execution_id, one.execution_id, "--json")
    assert (equal.exit_code, json.loads(equal.stdout)) == (0, [])
