"""The readable part of a damaged member of a pack, which a forced replay returns."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from system.host import real_host
from system.recording.records.record import ExecutionRecord
from system.recording.replays.replay import ReplayEngine
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.gzip_data import compressed, expand, expanded_before_damage
from system.recording.stores.readable_part import readable_part
from tests.sample import Sample
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import EVENTS, RESPONSE, run
from tests.unit.recording.recording_bench import Bench


@pytest.fixture
def member(bench: Bench) -> tuple[bytes, ExecutionRecord]:
    """Return the bytes of an execution in a pack, and its record."""

    async def work() -> tuple[bytes, ExecutionRecord]:
        await bench.open()
        record = await bench.finished()
        await bench.recording.checkpoint()
        found = bench.recording.files.packs.find(record.execution_id)
        assert found is not None
        return found.stored(bench.host.files), record

    return run(work())


def test_everything_before_the_damage_is_read(member: tuple[bytes, ExecutionRecord]) -> None:
    data, record = member
    for without_crc in (data[:-8], data[:-5] + b"????" + data[-1:]):
        part = readable_part(without_crc, record.execution_id)
        assert part is not None
        assert (part.envelope, part.events) == (record.envelope, record.events)
        assert (part.final_response, part.header.replayable) == (RESPONSE, False)
        assert part.header.replayable_reason == "record_corrupted"
    lines = expand(data, "").splitlines(keepends=True)
    damaged = compressed(b"".join([*lines[:3], lines[3].replace(b'"p":', b'"p":?'), *lines[4:]]))
    part = readable_part(damaged, record.execution_id)
    assert part is not None
    assert [event.payload for event in part.events] == [payload for _, payload in EVENTS[:2]]
    assert ReplayEngine(part).replay(force=True).response is None


def test_only_a_small_part_of_long_damaged_data_is_read_byte_by_byte() -> None:
    content = Random(1).randbytes(1 << 20)
    data = bytearray(compressed(content))
    data[-5] ^= 1
    pieces = list(expanded_before_damage(bytes(data)))
    assert b"".join(pieces) == content
    assert len(pieces) < len(data) // 10
    assert b"".join(expanded_before_damage(compressed(content) + b"behind")) == content


def test_a_member_without_its_start_or_of_another_execution_has_none(
    member: tuple[bytes, ExecutionRecord],
) -> None:
    data, record = member
    assert readable_part(data, "exec-" + "f" * 16) is None
    for unreadable in (b"", data[:20], compressed(b"".join(expand(data, "").splitlines(True)[1:]))):
        assert readable_part(unreadable, record.execution_id) is None


def test_a_response_that_is_no_object_is_not_read(member: tuple[bytes, ExecutionRecord]) -> None:
    data, record = member
    *lines, last = expand(data, "").splitlines(keepends=True)
    start, _, end = last.partition(b'"p":')
    odd = start + b'"p":[]' + end[end.index(b',"ts"') :]
    part = readable_part(compressed(b"".join([*lines, odd])), record.execution_id)
    assert part is not None
    assert part.final_response is None


def test_a_log_record_that_is_no_plain_json_is_not_read(
    member: tuple[bytes, ExecutionRecord],
) -> None:
    data, record = member
    lines = expand(data, "").splitlines(keepends=True)
    # Such as the flip of a bit in the escape of a character of another script.
    odd = [line.replace(b'"status":"', b'"status":"\\ud816') for line in lines]
    for damaged, events in ((lines[:-2] + odd[-2:], 3), (lines[:-1] + odd[-1:], 4)):
        part = readable_part(compressed(b"".join(damaged)), record.execution_id)
        assert part is not None
        assert part.events == record.events[:events]
    start = lines[0].replace(b'"agent":"', b'"agent":"\\ud816')
    assert readable_part(compressed(b"".join([start, *lines[1:]])), record.execution_id) is None


def test_every_flip_leaves_a_record_or_none(
    member: tuple[bytes, ExecutionRecord], sample: Sample
) -> None:
    """In the gate, a sample of the flips."""
    data, record = member
    for flip in sample(range(8 * len(data)), 600):
        flipped = bytearray(data)
        flipped[flip // 8] ^= 1 << flip % 8
        part = readable_part(bytes(flipped), record.execution_id)
        if part is not None:
            assert part.execution_id == record.execution_id
            part.to_dict()
            assert not ReplayEngine(part).is_replayable()[0]


def test_a_forced_replay_of_a_damaged_member_returns_what_can_be_read(
    root: Path, ids: list[str]
) -> None:
    (pack,) = (root / "records").glob("*.pack")
    found = FileExecutionStore(real_host(str(root))).packs.find(ids[0])
    assert found is not None
    content = bytearray(pack.read_bytes())
    content[found.start + found.size_bytes - 6] ^= 1
    pack.write_bytes(content)
    assert invoke(root, "replay", ids[0]).exit_code == 1
    forced = invoke(root, "replay", ids[0], "--force")
    assert (forced.exit_code, forced.stderr) == (0, "Forced replay of non-replayable record\n")
    assert '"status": "success"' in forced.stdout
    shown = invoke(root, "records", "show", ids[0])
    assert (shown.exit_code, "record_corrupted" in shown.stdout) == (1, True)
    assert invoke(root, "replay", ids[1]).exit_code == 0
