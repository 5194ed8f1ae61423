"""Reading the records of a root that this process has not opened: a damaged log, a root in use."""

from __future__ import annotations

import errno
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from system.host import RealFileSystem, real_host
from system.recording.offline_store import OfflineRecords
from system.recording.open_recording import resume_recording
from system.recording.records.errors import RecordCorruptedError
from system.recording.wal.recovery import read_log
from system.recording.wal_store import WalExecutionStore
from system.runtime import Options
from tests.unit.recording.command_root import invoke, team
from tests.unit.recording.executions import CountingIds, run
from tests.unit.recording.recording_bench import SEGMENT, Bench
from tests.unit.recording.test_commands import interrupted


@pytest.fixture
def lost(root: Path) -> str:
    """Return the id of an interrupted execution whose start is damaged."""
    execution_id = run(interrupted(root))
    (segment,) = (root / "wal").glob("*.wal")
    segment.write_bytes(segment.read_bytes().replace(b'{"envelope"', b'{"envelopE"'))
    return execution_id


@pytest.mark.parametrize(
    "command", [("records", "list"), ("records", "verify"), ("incomplete",)], ids=" ".join
)
def test_an_execution_without_its_start_is_damaged(
    root: Path, lost: str, command: tuple[str, ...]
) -> None:
    result = invoke(root, *command)
    assert result.exit_code == 1
    assert f"the log has no start of execution {lost}" in result.stderr
    assert "damaged bytes at offset 26" in result.stderr


@pytest.mark.parametrize("command", [("records", "show"), ("replay", "--force")], ids=" ".join)
def test_an_execution_without_its_start_cannot_be_read(
    root: Path, lost: str, command: tuple[str, ...]
) -> None:
    result = invoke(root, *command, lost)
    assert result.exit_code == 1
    assert f"the log has no start of execution {lost}" in result.stderr


@pytest.mark.parametrize("command", [("records", "list"), ("incomplete",)], ids=" ".join)
def test_damage_that_may_hide_an_execution_is_found(root: Path, command: tuple[str, ...]) -> None:
    run(interrupted(root))
    assert "damaged" not in invoke(root, *command).stderr
    (segment,) = (root / "wal").glob("*.wal")
    content = segment.read_bytes()
    segment.write_bytes(content[:9] + b"?" + content[10:])
    result = invoke(root, *command)
    assert result.exit_code == 1
    assert "26 damaged bytes at offset 0: its header is damaged" in result.stderr


def test_records_of_files_and_of_the_log_are_listed_in_order(root: Path, ids: list[str]) -> None:
    planned = CountingIds()
    planned.planned = ["f" * 16]
    last = run(interrupted(root, ids=planned))
    assert list(OfflineRecords(real_host(str(root))).list_all()) == [*ids, last]


def test_a_link_to_nothing_does_not_end_the_verification(root: Path, ids: list[str]) -> None:
    name = "exec-" + "0" * 16
    (root / "records" / f"{name}.json").symlink_to("nothing")
    result = invoke(root, "records", "verify")
    assert result.exit_code == 1
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        [name, "damaged"], *([each, "sound"] for each in ids),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "command", [("records", "show"), ("records", "verify"), ("replay",)], ids=" ".join
)
def test_a_file_of_another_execution_is_damage(
    root: Path, ids: list[str], command: tuple[str, ...]
) -> None:
    (root / "records" / f"{ids[0]}.json").mkdir()
    result = invoke(root, *command, ids[0])
    assert result.exit_code == 1
    assert "it is not a regular file; move it out of the store" in result.stderr


@pytest.mark.parametrize("command", ["records list", "records show ID", "replay ID", "incomplete"])
def test_records_that_are_no_directory_are_named(root: Path, ids: list[str], command: str) -> None:
    shutil.rmtree(root / "records")
    (root / "records").write_bytes(b"")
    result = invoke(root, *command.replace("ID", ids[0]).split())
    assert result.exit_code == 1
    assert result.stderr == "records: it is not a directory; move it out of the store\n"


@pytest.mark.parametrize(
    "command",
    ["records list", "records verify", "records show ID", "replay ID", "diff ID ID", "incomplete"],
)
@pytest.mark.parametrize("gone", ["records", "records/00000001.pack"])
def test_records_that_are_gone_are_named(
    root: Path, ids: list[str], gone: str, command: str
) -> None:
    (root / "records" / "00000001.pack").unlink()
    if gone == "records":
        (root / "records").rmdir()
    result = invoke(root, *command.replace("ID", ids[0]).split())
    assert result.exit_code == (2 if command.startswith("diff") else 1)
    assert result.stderr.startswith(f"{gone}: ")
    assert "is missing" in result.stderr


COMMANDS = ["records list", "records verify", "records show ID", "replay ID", "incomplete"]
"""With an id that no record has."""


def remove_recording(root: Path) -> Path:
    """Remove all files of the recording; return the log of the only session."""
    for name in ("wal", "records", "snapshots"):
        shutil.rmtree(root / name)
    (root / "checkpoint").unlink(missing_ok=True)
    (log,) = root.glob("agents/*/events.jsonl")
    return log


@pytest.mark.parametrize("command", COMMANDS)
def test_a_recording_that_is_gone_as_a_whole_is_shown_by_the_turns_of_sessions(
    root: Path, ids: list[str], command: str
) -> None:
    log = remove_recording(root)
    result = invoke(root, *command.replace("ID", ids[0]).split())
    assert result.exit_code == (2 if command.startswith("diff") else 1)
    assert result.stderr.startswith("records: ")
    assert log.parent.name in result.stderr or "may have had execution" in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_turn_that_has_not_called_its_provider_shows_no_recording(
    root: Path, ids: list[str], command: str
) -> None:
    # After a power cut its start may be there without the directories.
    log = remove_recording(root)
    lines = log.read_bytes().splitlines(keepends=True)
    started = [number for number, line in enumerate(lines) if b'"turn.start"' in line]
    log.write_bytes(b"".join(lines[: started[0] + 1]))
    result = invoke(root, *command.replace("ID", ids[0]).split())
    assert result.exit_code == (2 if "ID" in command else 0)
    assert "missing" not in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_root_that_has_never_recorded_is_not_damaged(tmp_path: Path, command: str) -> None:
    run(team(tmp_path, options=Options(recording=None)))
    result = invoke(tmp_path, *command.replace("ID", "exec-" + "0" * 16).split())
    assert result.exit_code == (2 if "ID" in command else 0)
    assert "missing" not in result.stderr


def test_a_snapshot_that_is_gone_is_named(bench: Bench) -> None:
    async def work() -> str:
        await bench.open()
        _, execution_id = bench.started(2)
        await bench.recording.checkpoint()
        return execution_id

    execution_id = run(work())
    (bench.root / "snapshots" / "00000001.pack").unlink()
    store = OfflineRecords(bench.host)
    assert [each.partition(": ")[0] for each in store.log_problems()] == ["snapshots/00000001.pack"]
    with pytest.raises(RecordCorruptedError, match="it is missing, and may have had execution"):
        store.load(execution_id)


class FilesDuringCheckpoint(RealFileSystem):
    """The files of ``root``; a checkpoint ends when the segments are listed for the first time."""

    def __init__(self, root: Path, following: Path) -> None:
        super().__init__(str(root))
        self._root = root
        self._following = following

    def listdir(self, path: str) -> list[str]:
        if path == "wal" and self._following.exists():
            shutil.rmtree(self._root)
            self._following.rename(self._root)
        return super().listdir(path)


def test_a_checkpoint_of_the_owner_is_not_damage(bench: Bench, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"

    async def work() -> list[str]:
        await bench.open()
        record = await bench.finished()
        _, running = bench.started(3)
        shutil.copytree(bench.root, before, symlinks=True, ignore=lambda *_: ("before",))
        await bench.recording.checkpoint()
        await bench.finished()
        shutil.copytree(bench.root, after, symlinks=True, ignore=lambda *_: ("before", "after"))
        return [record.execution_id, running]

    ids = run(work())
    host = replace(real_host(str(before)), files=FilesDuringCheckpoint(before, after))
    store = OfflineRecords(host)
    assert list(store.log_problems()) == []
    assert set(ids) < set(store.list_all())
    assert not after.exists()


class FilesDuringPutAside(RealFileSystem):
    """The files of ``root``; a recovery puts the record at ``path`` aside when it is first read."""

    def __init__(self, root: Path, path: str) -> None:
        super().__init__(str(root))
        self._damaged = root / path

    def read(self, path: str) -> tuple[bytes, int]:
        if path.startswith("records/") and self._damaged.exists():
            self._damaged.rename(f"{self._damaged}.quarantine.1")
        return super().read(path)


@pytest.mark.parametrize("is_logged", [True, False])
def test_a_damaged_record_that_the_owner_puts_aside_meanwhile_is_found_elsewhere(
    bench: Bench, is_logged: bool
) -> None:
    async def work() -> str:
        await bench.open()
        record = await bench.finished()
        if not is_logged:
            await bench.recording.checkpoint()
        return record.execution_id

    execution_id = run(work())
    path = f"records/{execution_id}.json"
    (bench.root / "records").mkdir(exist_ok=True)
    (bench.root / path).write_bytes(b"{")
    host = replace(bench.host, files=FilesDuringPutAside(bench.root, path))
    assert OfflineRecords(host).load(execution_id).execution_id == execution_id
    assert (bench.root / f"{path}.quarantine.1").exists()


@pytest.mark.parametrize(
    "command", [("records", "verify"), ("records", "show"), ("replay",)], ids=" ".join
)
def test_an_execution_of_the_log_that_lacks_an_event_is_damaged(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    root = tmp_path / "killed"
    run(team(root, kill=True))
    segment = root / "wal" / SEGMENT
    before, _, behind = segment.read_bytes().partition(b'"retryOf"')
    segment.write_bytes(before + b'"retryof"' + behind)
    execution_id = behind.partition(b'"x":"')[2][:21].decode()
    result = invoke(root, *command, execution_id)
    assert result.exit_code == 1
    assert f"wal ({execution_id}): events are missing: their numbers are [1, 3" in result.stderr
    assert "sound" not in result.stdout
    shown = invoke(root, "records", "list").stdout.splitlines()
    assert [line.split()[2] for line in shown if line.startswith(execution_id)] == ["corrupted"]
    assert execution_id not in invoke(root, "incomplete", "--all").stdout


@pytest.mark.parametrize("is_running", [False, True])
def test_a_store_returns_no_record_of_an_execution_that_lacks_an_event(
    bench: Bench, is_running: bool
) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        await recorder.barrier()
        await bench.finished()
        segment = bench.root / "wal" / SEGMENT
        segment.write_bytes(segment.read_bytes().replace(b'"retryOf"', b'"retryof"', 1))
        log = read_log(bench.host.files, bench.host.clock)
        running = [execution_id] if is_running else []
        recording = resume_recording(bench.host, log, running=running)
        with pytest.raises(RecordCorruptedError, match="events are missing") as corrupted:
            WalExecutionStore(recording, bench.host.clock).load(execution_id)
        assert corrupted.value.record is not None
        assert len(corrupted.value.record.events) == 3

    run(work())


def test_a_segment_that_its_owner_removes_before_it_is_read_is_read_again(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        execution_id = (await bench.finished()).execution_id
        bench.here.files.fail("open-read", SEGMENT, errno.ENOENT)
        assert list(OfflineRecords(bench.host).list_all()) == [execution_id]

    run(work())
