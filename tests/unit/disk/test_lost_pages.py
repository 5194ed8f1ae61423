"""Lost data returns with its block, unwritten blocks are zeros, dropped pages show the disk."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from sim.disk.cache.operation import DropPages, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.journal_file import decode_journal, encode_journal
from sim.disk.crash.persistence import EXT4_JOURNAL, MODELS, POSIX, SCC, XFS, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk
from sim.errors import SimulatedCrash
from tests.unit.disk.test_failed_syncs_reported import FailingSyncs

_MODELS = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
_LOSING = pytest.mark.parametrize(
    "policy", [each for each in SyncFailure if each is not SyncFailure.LYING]
)
_BLOCK = 4096


class _File:
    """A file with durable content, of which the next barrier fails."""

    def __init__(
        self, content: bytes, policy: SyncFailure, model: PersistenceModel = POSIX
    ) -> None:
        self.disk = Disk(model=model)
        self._policy = policy
        self._open(self.disk)
        self.write(content, 0)
        self.process.sync()

    def _open(self, disk: Disk) -> None:
        self.disk, self.process = disk, Process(disk)
        self.descriptor = self.process.open("/f", os.O_CREAT | os.O_RDWR)

    def write(self, data: bytes, offset: int) -> None:
        self.process.pwrite(self.descriptor, data, offset)

    def fail(self, data: bytes, offset: int) -> None:
        """Write data, and sync it twice; the first sync fails."""
        self.write(data, offset)
        self.disk.interposer = FailingSyncs(self._policy)
        for _ in range(3):
            try:
                self.process.fsync(self.descriptor)
            except OSError:
                continue
        self.disk.interposer = None

    def kill(self) -> None:
        self._open(Disk(self.disk.snapshot(), self.disk.model))

    def drop(self, offset: int = 0, length: int = 0) -> None:
        self.process.posix_fadvise(self.descriptor, offset, length, os.POSIX_FADV_DONTNEED)

    def read(self) -> bytes:
        return self.process.pread(self.descriptor, 1 << 20, 0)

    def durable(self) -> bytes:
        """Sync, and return the content after a power cut."""
        self.process.fsync(self.descriptor)
        (content,) = self.after_power_cut()
        return content

    def after_power_cut(self) -> set[bytes]:
        states = StateSpace(self.disk.unsynced()).all()
        images = [Image.of_platter(state.inodes, self.disk.next_inode) for state in states]
        return {image.files()["/f"] for image in images}


@_MODELS
@_LOSING
@pytest.mark.parametrize("is_killed", [False, True])
def test_lost_data_returns_with_the_next_write_to_its_block(
    policy: SyncFailure, model: PersistenceModel, is_killed: bool
) -> None:
    file = _File(b"a" * 2 * _BLOCK, policy, model)
    file.fail(b"L" * 10, 100)
    file.write(b"x", _BLOCK)
    assert file.durable()[90:120] == b"a" * 30
    if is_killed:
        file.kill()
    file.write(b"y", 3000)
    found = file.durable()
    assert (found[90:120], found[3000:3001]) == (b"a" * 10 + b"L" * 10 + b"a" * 10, b"y")


@_LOSING
@pytest.mark.parametrize(
    ("offset", "content"),
    [(104, b"LLLLyLLLLL"), (98, b"LLLLLLLLLL"), (99, b"yLLLLLLLLL"), (108, b"LLLLLLLLyy")],
)
def test_lost_data_beside_a_write_is_one_piece_with_it(
    policy: SyncFailure, offset: int, content: bytes
) -> None:
    file = _File(b"a" * 200, policy, XFS)
    file.fail(b"L" * 10, 100)
    file.write(b"y" * content.count(b"y") or b"y", offset)
    assert len(file.disk.unsynced().micros) == 1 + (offset == 98)
    assert file.durable()[100:110] == (content if offset != 99 else b"L" * 10)


@pytest.mark.parametrize(
    ("model", "states"),
    [(EXT4_JOURNAL, {b"aaa", b"yaa", b"yaL", b"yyL"}), (SCC, {b"aaa", b"aaL", b"yyL"})],
)
def test_lost_data_returns_after_the_blocks_that_are_written_before_its_own(
    model: PersistenceModel, states: set[bytes]
) -> None:
    file = _File(b"a" * 2 * _BLOCK, SyncFailure.XFS, model)
    file.fail(b"L", _BLOCK + 100)
    file.write(b"yy", _BLOCK - 1)
    found = file.after_power_cut()
    assert {each[_BLOCK - 1 : _BLOCK + 1] + each[_BLOCK + 100 :][:1] for each in found} == states


@_LOSING
@pytest.mark.parametrize("size", [100, 200])
def test_a_truncation_inside_a_block_writes_its_lost_data_but_on_btrfs(
    policy: SyncFailure, size: int
) -> None:
    file = _File(b"a" * 200, policy)
    file.fail(b"L" * 30, 90)
    file.process.ftruncate(file.descriptor, size)
    lost = b"a" if policy is SyncFailure.BTRFS else b"L"
    assert file.durable() == (b"a" * 90 + lost * 30 + b"a" * 80)[:size]


@_LOSING
@pytest.mark.parametrize(
    "grow",
    [
        lambda file: file.process.ftruncate(file.descriptor, 300),
        lambda file: file.process.posix_fallocate(file.descriptor, 0, 300),
        lambda file: file.process.pwrite(file.descriptor, b"x", 9000),
    ],
    ids=["truncate", "fallocate", "write"],
)
def test_growth_of_a_file_writes_the_lost_data_of_its_last_block(
    policy: SyncFailure, grow: Callable[[_File], object]
) -> None:
    file = _File(b"a" * 200, policy)
    file.fail(b"L" * 30, 90)
    grow(file)
    assert file.durable()[:200] == b"a" * 90 + b"L" * 30 + b"a" * 80


@pytest.mark.parametrize(("policy", "returns"), [("ext4", False), ("xfs", False), ("btrfs", True)])
@pytest.mark.parametrize("size", [_BLOCK + 50, _BLOCK + 200])
def test_only_btrfs_writes_the_lost_data_of_a_new_block_if_the_file_grows(
    policy: str, returns: bool, size: int
) -> None:
    file = _File(b"a" * _BLOCK, SyncFailure(policy))
    file.fail(b"L" * 100, _BLOCK)
    file.process.ftruncate(file.descriptor, size)
    content = b"L" * 100 if returns and size > _BLOCK + 100 else b""
    assert file.durable() == b"a" * _BLOCK + content.ljust(size - _BLOCK, b"\0")


@_LOSING
def test_a_truncation_drops_the_lost_data_behind_the_end(policy: SyncFailure) -> None:
    file = _File(b"a" * 2 * _BLOCK, policy)
    file.fail(b"L" * 30, _BLOCK + 90)
    file.process.ftruncate(file.descriptor, _BLOCK)
    file.process.ftruncate(file.descriptor, 2 * _BLOCK)
    file.write(b"x", _BLOCK)
    assert file.durable() == b"a" * _BLOCK + b"x".ljust(_BLOCK, b"\0")


@_MODELS
@pytest.mark.parametrize("is_killed", [False, True])
def test_what_is_written_again_over_a_failed_append_of_ext4_is_lost(
    model: PersistenceModel, is_killed: bool
) -> None:
    file = _File(b"a" * _BLOCK, SyncFailure.EXT4, model)
    file.fail(b"L" * 100, _BLOCK)
    if is_killed:
        file.kill()
    for _ in range(2):
        file.write(b"L" * 100, _BLOCK)
        file.write(b"M" * 100, _BLOCK + 100)
        assert file.durable() == b"a" * _BLOCK + bytes(200)


@_MODELS
@pytest.mark.parametrize("policy", [SyncFailure.XFS, SyncFailure.BTRFS])
def test_only_ext4_has_unwritten_blocks(policy: SyncFailure, model: PersistenceModel) -> None:
    file = _File(b"a" * _BLOCK, policy, model)
    file.fail(b"L" * 100, _BLOCK)
    file.write(b"L" * 100, _BLOCK)
    assert file.durable() == b"a" * _BLOCK + b"L" * 100


def test_only_the_new_blocks_of_an_append_are_unwritten() -> None:
    file = _File(b"a" * 100, SyncFailure.EXT4)
    file.fail(b"L" * _BLOCK, 100)
    file.write(b"L" * _BLOCK, 100)
    assert file.durable() == b"a" * 100 + b"L" * (_BLOCK - 100) + bytes(100)


def test_a_write_that_is_one_piece_is_cut_only_at_unwritten_blocks() -> None:
    file = _File(b"a" * 2 * _BLOCK, SyncFailure.EXT4, SCC)
    file.fail(b"L" * 10, 2 * _BLOCK)
    file.write(b"b" * (2 * _BLOCK + 20), 0)
    before, after = b"a" * 2 * _BLOCK + bytes(10), b"b" * 2 * _BLOCK + bytes(20)
    assert file.after_power_cut() == {before, after}


def test_a_hole_is_unwritten() -> None:
    file = _File(b"a", SyncFailure.EXT4)
    file.process.ftruncate(file.descriptor, 3 * _BLOCK)
    file.process.fsync(file.descriptor)
    file.fail(b"L" * 10, _BLOCK)
    file.write(b"L" * 10, _BLOCK)
    assert file.durable() == b"a".ljust(3 * _BLOCK, b"\0")


@pytest.mark.parametrize(
    ("size", "is_durable"), [(_BLOCK, True), (10, True), (_BLOCK + 1, False), (_BLOCK + 100, False)]
)
def test_a_truncation_frees_an_unwritten_block_from_its_start(size: int, is_durable: bool) -> None:
    file = _File(b"a" * _BLOCK, SyncFailure.EXT4)
    file.fail(b"L" * 100, _BLOCK)
    file.process.ftruncate(file.descriptor, size)
    file.write(b"L" * 100, _BLOCK)
    assert file.durable()[_BLOCK:] == (b"L" if is_durable else b"\0") * 100


@pytest.mark.parametrize("is_killed", [False, True])
def test_dropped_pages_show_the_disk_and_can_be_written(is_killed: bool) -> None:
    file = _File(b"a" * 100, SyncFailure.EXT4)
    file.fail(b"L" * _BLOCK, 50)
    if is_killed:
        file.kill()
    assert file.read() == b"a" * 50 + b"L" * _BLOCK
    file.drop()
    assert file.read() == b"a" * 100 + bytes(_BLOCK - 50)
    assert file.durable() == file.read()
    file.write(b"L" * _BLOCK, 50)
    assert file.durable() == b"a" * 50 + b"L" * _BLOCK


def test_a_page_in_which_something_is_unsynced_is_not_dropped() -> None:
    file = _File(b"a" * 2 * _BLOCK, SyncFailure.XFS)
    file.fail(b"L" * 2 * _BLOCK, 0)
    file.write(b"x", 100)
    file.drop()
    assert file.read() == b"L" * 100 + b"x" + b"L" * (_BLOCK - 101) + b"a" * _BLOCK


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_unwritten_block_that_was_written_is_not_dropped_before_the_next_barrier(
    is_killed: bool,
) -> None:
    file = _File(b"a" * _BLOCK, SyncFailure.EXT4)
    file.fail(b"L" * 20, _BLOCK)
    file.write(b"M" * 10, _BLOCK)
    synced = file.process.open("/f", os.O_WRONLY | os.O_DSYNC)
    file.process.pwrite(synced, b"b", 0)
    if is_killed:
        file.kill()
    file.drop()
    assert file.read()[_BLOCK:] == b"M" * 10 + b"L" * 10
    assert file.durable()[_BLOCK:] == bytes(20)
    file.drop()
    assert file.read()[_BLOCK:] == bytes(20)
    file.write(b"M" * 10, _BLOCK)
    assert file.durable()[_BLOCK:] == b"M" * 10 + bytes(10)


def test_a_barrier_that_fails_lets_an_unwritten_block_be_dropped() -> None:
    file = _File(b"a" * _BLOCK, SyncFailure.EXT4)
    file.fail(b"L" * 20, _BLOCK)
    file.write(b"M" * 10, _BLOCK)
    file.disk.interposer = FailingSyncs(SyncFailure.EXT4)
    with pytest.raises(OSError, match="Input/output error"):
        file.process.fsync(file.descriptor)
    file.disk.interposer = None
    file.drop()
    assert file.read()[_BLOCK:] == bytes(20)


@pytest.mark.parametrize(
    ("offset", "length", "blocks"),
    [
        (0, _BLOCK, {0}),
        (1, _BLOCK, set()),
        (1, 2 * _BLOCK, {1}),
        (1, 0, {1, 2}),
        (0, 2 * _BLOCK + 5, {0, 1}),
        (0, 2 * _BLOCK + 10, {0, 1, 2}),
        (0, 2 * _BLOCK + 11, {0, 1}),
        (0, 3 * _BLOCK, {0, 1, 2}),
        (_BLOCK, 3, set()),
        (-1, 1, {0, 1, 2}),
        (1 - _BLOCK, 0, {0, 1, 2}),
        (-_BLOCK, 0, set()),
        (-_BLOCK, 2 * _BLOCK, set()),
    ],
)
def test_only_whole_pages_are_dropped(offset: int, length: int, blocks: set[int]) -> None:
    file = _File(b"a" * (2 * _BLOCK + 10), SyncFailure.XFS)
    file.fail(b"L" * (2 * _BLOCK + 10), 0)
    file.drop(offset, length)
    assert {block for block in range(3) if file.read()[block * _BLOCK] == ord("a")} == blocks


def test_advice_is_an_operation_only_if_a_barrier_has_failed() -> None:
    file = _File(b"a", SyncFailure.XFS)
    operations = file.disk.operations
    file.drop()
    assert file.disk.operations == operations
    file.fail(b"b", 0)
    file.drop()
    assert isinstance(file.disk.journal[-1], DropPages)
    file.process.posix_fadvise(file.descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
    assert sum(isinstance(each, DropPages) for each in file.disk.journal) == 1


@pytest.mark.parametrize(
    ("phase", "content"), [(Phase.BEFORE, b"L"), (Phase.DURING, b"L"), (Phase.AFTER, b"a")]
)
def test_a_kill_after_pages_are_dropped_leaves_the_page_cache_without_them(
    phase: Phase, content: bytes
) -> None:
    file = _File(b"a", SyncFailure.XFS)
    file.fail(b"L", 0)
    file.disk.interposer = CrashCounter(file.disk, 1, phase)
    with pytest.raises(SimulatedCrash):
        file.drop()
    assert file.disk.snapshot().files()["/f"] == content


@pytest.mark.parametrize("change", [_File.kill, _File.drop])
def test_a_journal_with_lost_pages_is_repeated(change: Callable[[_File], None]) -> None:
    file = _File(b"a" * 100, SyncFailure.EXT4)
    file.fail(b"L" * _BLOCK, 50)
    change(file)
    file.write(b"x", 4100)
    file.process.fsync(file.descriptor)
    again = Disk(file.disk.image, POSIX)
    again.repeat(decode_journal(encode_journal(Journal(Image.empty(), list(file.disk.journal)))))
    assert again.files() == file.disk.files()
    assert again.snapshot().unsynced == file.disk.snapshot().unsynced


@_LOSING
@pytest.mark.parametrize("size", [0, 50, 150])
def test_data_that_a_truncation_cut_off_before_the_failure_does_not_return(
    policy: SyncFailure, size: int
) -> None:
    file = _File(b"a" * 200, policy)
    file.write(b"L" * 100, 100)
    file.process.ftruncate(file.descriptor, size)
    file.fail(b"", 0)
    file.process.ftruncate(file.descriptor, 200)
    file.write(b"x", 199)
    assert b"L" not in file.durable()[size:]


def test_a_block_that_an_unsynced_truncation_has_freed_is_unwritten() -> None:
    file = _File(b"a" * 100, SyncFailure.EXT4)
    file.process.ftruncate(file.descriptor, 0)
    file.fail(b"L" * 100, 0)
    file.write(b"L" * 100, 0)
    assert file.durable() == bytes(100)
