"""Memory mapped to a file of the disk, and the operations that it makes."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.interpose.interposed import interposed
from powercut.interpose.router import ROUTER
from sim.disk.cache.operation import Sync, SyncFailure, Write
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.unit.disk.test_failed_syncs_reported import FailingSyncs


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    assert tmp_path.exists()
    process = Process(Disk())
    with interposed(process, sandbox=False):
        Path("f").write_bytes(b"0123456789" * 1000)
        yield process


def last(process: Process) -> object:
    return process.disk.journal[-1]


def test_changed_pages_become_writes_before_the_next_call(process: Process) -> None:
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:3] = b"abc"
        memory[9000] = ord("z")
        operations = process.disk.operations
        assert Path("f").read_bytes()[:4] == b"abc3"
        writes = [each for each in process.disk.journal[operations:] if isinstance(each, Write)]
        assert [(each.offset, len(each.data)) for each in writes] == [(8192, 1808), (0, 4096)]


def test_a_flush_is_a_barrier_on_the_data_of_its_pages(process: Process) -> None:
    inode = os.stat("f").st_ino
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:1] = b"x"
        memory.flush()
        assert isinstance(process.disk.journal[-2], Write)
        assert last(process) == Sync("f", inode, data_only=True, start=0, end=10_000)
        memory.flush(4096, 4096)
        assert last(process) == Sync("f", inode, data_only=True, start=4096, end=8192)
        operations = process.disk.operations
        memory.flush(0, 0)
        assert process.disk.operations == operations
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 0, offset=8192) as memory:
        memory.flush()
        assert last(process) == Sync("f", inode, data_only=True, start=8192, end=10_000)


def test_a_flush_reports_a_failure_as_a_barrier_on_its_descriptor_does(process: Process) -> None:
    with open("f", "r+b") as file, open("f", "r+b") as other:
        memory = mmap.mmap(file.fileno(), 0)
        memory[:1] = b"x"
        process.disk.interposer = FailingSyncs(SyncFailure.EXT4)
        with pytest.raises(OSError, match="Input/output error"):
            memory.flush()
        os.fsync(file.fileno())
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(other.fileno())
        process.disk.interposer = FailingSyncs(SyncFailure.EXT4)
        with pytest.raises(OSError, match="Input/output error"):
            os.fsync(other.fileno())
        with pytest.raises(OSError, match="Input/output error"):
            memory.flush()
        memory.flush()
        os.fsync(file.fileno())
        memory.close()


@pytest.mark.skipif(not hasattr(mmap, "MS_ASYNC"), reason="flush has flags from CPython 3.15 on")
def test_only_a_synchronous_flush_is_a_barrier(process: Process) -> None:
    constants = vars(mmap)
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        flush: Any = memory.flush
        for flags in (constants["MS_ASYNC"], constants["MS_INVALIDATE"]):
            memory[:1] = b"x"
            flush(flags=flags)
            os.stat("f")
            assert not isinstance(last(process), Sync)
        flush(0, 4096, flags=constants["MS_SYNC"] | constants["MS_INVALIDATE"])
        assert isinstance(last(process), Sync)


def test_memory_shows_what_a_call_wrote(process: Process) -> None:
    with open("f", "r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as memory:
        file.write(b"new")
        assert memory[:4] == b"new3"
        assert memory.size() == 10_000


def test_a_private_mapping_changes_no_file(process: Process) -> None:
    with (
        open("f", "r+b") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as memory,
    ):
        memory[:1] = b"x"
    assert Path("f").read_bytes()[:1] == b"0"


@pytest.mark.parametrize("reader_is_first", [True, False])
def test_all_mappings_of_a_file_have_its_memory(process: Process, *, reader_is_first: bool) -> None:
    ways = [mmap.ACCESS_READ, mmap.ACCESS_WRITE, mmap.ACCESS_WRITE]
    step = 1 if reader_is_first else -1
    with open("f", "r+b") as file:
        made = [mmap.mmap(file.fileno(), 0, access=way) for way in ways[::step]]
    reader, one, other = made[::step]
    one[0:1] = b"a"
    other[1:2] = b"b"
    assert one[:3] == other[:3] == reader[:3] == b"ab2"
    assert Path("f").read_bytes()[:3] == b"ab2"
    reader.close()
    other.close()
    other.close()
    one[2:3] = b"c"
    assert Path("f").read_bytes()[:3] == one[:3] == b"abc"


def test_a_flush_of_a_mapping_that_cannot_change_its_file_is_no_barrier(process: Process) -> None:
    with open("f", "r+b") as file:
        for options in (
            {"access": mmap.ACCESS_READ},
            {"access": mmap.ACCESS_COPY},
            {"flags": mmap.MAP_PRIVATE},
            {"prot": mmap.PROT_READ},
        ):
            with mmap.mmap(file.fileno(), 0, **options) as memory:
                memory.flush()
    assert not isinstance(last(process), Sync)


def test_a_mapping_that_fails_holds_no_memory(process: Process) -> None:
    with open("f", "r+b") as file, pytest.raises(ValueError, match="length"):
        mmap.mmap(file.fileno(), 20_000)
    assert ROUTER.lifetime is not None
    assert ROUTER.lifetime.is_plain


def test_a_mapping_resizes_its_file(process: Process) -> None:
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory.resize(20_000)
        memory[19_999:] = b"z"
    assert os.stat("f").st_size == 20_000
    assert Path("f").read_bytes()[-2:] == b"\0z"


def test_a_new_mapping_has_the_size_of_its_file(process: Process, tmp_path: Path) -> None:
    for folder in ("/disk", str(tmp_path)):
        with open(f"{folder}/f", "w+b", buffering=0) as file:
            file.write(b"0123456789" * 1000)
            with mmap.mmap(file.fileno(), 0) as memory:
                file.truncate(5000)
                assert (memory.size(), len(memory)) == (5000, 10_000)
                with mmap.mmap(file.fileno(), 0) as other:
                    assert len(other) == 5000
                with mmap.mmap(file.fileno(), 0, offset=4096) as other:
                    assert (len(other), other.size()) == (904, 5000)
                for length, offset in ((5001, 0), (905, 4096), (0, 8192)):
                    with pytest.raises(ValueError, match="greater than file size"):
                        mmap.mmap(file.fileno(), length, offset=offset)
                file.truncate(0)
                with pytest.raises(ValueError, match="empty file"):
                    mmap.mmap(file.fileno(), 0)
                file.truncate(9000)
                assert memory.size() == 9000
            with pytest.raises(ValueError, match="closed"):
                memory.size()


def test_a_truncation_drops_the_pages_of_a_private_mapping(
    process: Process, tmp_path: Path
) -> None:
    for folder in ("/disk", str(tmp_path)):
        with open(f"{folder}/f", "w+b", buffering=0) as file:
            file.write(b"a" * 12_288)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as memory:
                memory[:1] = memory[4096:4097] = memory[8192:8193] = b"X"
                file.truncate(4100)
                file.seek(0)
                file.write(b"b" * 12_288)
                assert memory[:2] == b"Xa"
                assert memory[4096:4098] == b"Xa"
                assert memory[8192:8194] == b"bb"


def test_memory_behind_the_end_of_a_file_is_zero(process: Process) -> None:
    with open("f", "r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as memory:
        file.truncate(5000)
        assert memory[4995:5005] == b"56789" + bytes(5)
        assert memory[9000:] == bytes(1000)
        file.truncate(10_000)
        assert memory[4995:] == b"56789" + bytes(5000)


def test_a_mapping_that_was_dropped_is_written_back(process: Process) -> None:
    with open("f", "r+b") as file:
        memory = mmap.mmap(file.fileno(), 4096)
    memory[:1] = b"x"
    del memory
    gc.collect()
    assert Path("f").read_bytes()[:1] == b"x"


def test_a_descriptor_must_allow_the_access(process: Process) -> None:
    with open("f", "rb") as file:
        with pytest.raises(PermissionError):
            mmap.mmap(file.fileno(), 0)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            assert memory.find(b"9") == 9
    with open("f", "ab") as file, pytest.raises(PermissionError):
        mmap.mmap(file.fileno(), 0)
    Path("empty").touch()
    for mode in ("r+b", "ab"):
        with open("empty", mode) as file, pytest.raises(ValueError, match="empty file"):
            mmap.mmap(file.fileno(), 0)


def test_mappings_of_the_machine_stay_what_they_are(process: Process, tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"abc")
    with open(tmp_path / "real", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:1] = b"x"
        memory.flush()
    assert (tmp_path / "real").read_bytes() == b"xbc"
    with mmap.mmap(-1, 10) as anonymous:
        assert isinstance(anonymous, mmap.mmap)


def _stores(ack: History, *, flushes: bool) -> None:
    ack.attempt({"f": b""})
    Path("f").write_bytes(b"old")
    os.sync()
    ack({"f": b"old"})
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:] = b"new"
        if flushes:
            memory.flush()
        ack({"f": b"new"})


def test_a_store_without_a_flush_is_lost_and_one_with_it_is_not() -> None:
    def careful(ack: History) -> None:
        _stores(ack, flushes=True)

    def careless(ack: History) -> None:
        _stores(ack, flushes=False)

    assert explore(careful, model="scc").safe
    assert not explore(careless, model="scc").safe


def _commits(ack: History) -> None:
    """Store data, then in the header their number; the flush syncs the header only."""
    Path("f").write_bytes(bytes(8192))
    os.sync()
    with open("f", "r+b") as file, mmap.mmap(file.fileno(), 8192) as memory:
        memory[5000] = memory[0] = 1
        memory.flush(0, 4096)
        ack("committed")


def _has_what_its_header_says(_known: Known) -> None:
    content = Path("f").read_bytes() if Path("f").exists() else b""
    assert len(content) < 8192 or content[5000] >= content[0], "a header without its data"


def test_a_header_that_was_stored_last_is_ahead_of_its_data_at_a_power_cut_only() -> None:
    assert explore(_commits, _has_what_its_header_says, model="scc").safe
    found = explore(_commits, _has_what_its_header_says, model="ext4")
    assert found.failures
    assert all(each.needs_power_cut for each in found.failures)
