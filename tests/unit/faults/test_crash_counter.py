"""The crash counter: every mutating operation, three phases, kill and power cut."""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable

import pytest

from faults.crash_counter import CrashCounter, Hit, crash_image, page_prefix, page_prefixes
from faults.crash_point import CrashKind, CrashPoint, Phase
from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from sim.disk.cache.inode import Inode
from sim.disk.cache.operation import Operation, Resize, Write
from sim.disk.crash.persistence import POSIX, SCC
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import HarnessError, PowerOff, SimulatedCrash

_FILE = stat.S_IFREG | 0o644
_DIRECTORY = stat.S_IFDIR | 0o755


def _prepared() -> tuple[Disk, Inode, Inode]:
    """Return a disk with the durable file ``/f`` = b"old" and directory ``/d``."""
    disk = Disk(model=POSIX)
    file = disk.create(disk.root, "f", _FILE, "/f")
    disk.write(file, 0, b"old", "/f")
    directory = disk.create(disk.root, "d", _DIRECTORY, "/d")
    disk.sync_all()
    return disk, file, directory


Call = Callable[[Disk, Inode, Inode], object]

_CALLS: dict[str, Call] = {
    "create": lambda disk, file, directory: disk.create(directory, "new", _FILE, "/d/new"),
    "write": lambda disk, file, directory: disk.write(file, 0, b"NEW", "/f"),
    "resize": lambda disk, file, directory: disk.resize(file, 1, "/f"),
    "link": lambda disk, file, directory: disk.link(file, directory, "g", "/d/g"),
    "unlink": lambda disk, file, directory: disk.unlink(file, disk.root, "f", "/f"),
    "rename": lambda disk, file, directory: disk.rename(
        file, disk.root, "f", directory, "g", "/f", "/d/g"
    ),
    "set_attributes": lambda disk, file, directory: disk.set_attributes(file, "/f", mode=0o600),
    "sync": lambda disk, file, directory: disk.sync(file.number, "/f"),
    "sync_all": lambda disk, file, directory: disk.sync_all(),
}


def _crashed(call: Call, phase: Phase, kept: int = 0) -> tuple[Disk, CrashCounter]:
    disk, file, directory = _prepared()
    counter = CrashCounter(disk, 1, phase, kept)
    disk.interposer = counter
    with pytest.raises(SimulatedCrash):
        call(disk, file, directory)
    return disk, counter


@pytest.mark.parametrize("name", _CALLS)
@pytest.mark.parametrize("phase", Phase)
def test_every_mutating_operation_crashes_in_every_phase(name: str, phase: Phase) -> None:
    disk, counter = _crashed(_CALLS[name], phase)
    assert disk.off
    assert isinstance(counter.hit, Hit)
    assert (counter.hit.number, counter.hit.phase) == (5, phase)
    with pytest.raises(PowerOff):
        disk.sync_all()


@pytest.mark.parametrize("name", _CALLS)
def test_before_leaves_nothing_and_after_leaves_all_in_the_page_cache(name: str) -> None:
    untouched, *_ = _prepared()
    done, file, directory = _prepared()
    _CALLS[name](done, file, directory)
    kill = CrashPoint(5, Phase.BEFORE, CrashKind.KILL)
    before = crash_image(_crashed(_CALLS[name], Phase.BEFORE)[0], kill)
    after = crash_image(_crashed(_CALLS[name], Phase.AFTER)[0], kill)
    assert before.digest() == untouched.snapshot().digest()
    assert after.digest() == done.snapshot().digest()


@pytest.mark.parametrize("name", [name for name in _CALLS if not name.startswith("sync")])
def test_during_a_whole_write_or_a_metadata_operation_equals_after_it(name: str) -> None:
    kill = CrashPoint(5, Phase.DURING, CrashKind.KILL)
    during = crash_image(_crashed(_CALLS[name], Phase.DURING)[0], kill)
    after = crash_image(_crashed(_CALLS[name], Phase.AFTER)[0], kill)
    assert during.digest() == after.digest()
    assert len(during.unsynced) == len(after.unsynced)


@pytest.mark.parametrize("name", ["sync", "sync_all"])
def test_during_a_barrier_its_data_is_unsynced_and_after_it_durable(name: str) -> None:
    def body(disk: Disk, file: Inode, directory: Inode) -> None:
        disk.write(file, 0, b"NEW", "/f")
        disk.write(file, 1024, b"MORE", "/f")
        disk.interposer = CrashCounter(disk, 1, phase)
        _CALLS[name](disk, file, directory)

    left = {}
    for phase in Phase:
        disk, file, directory = _prepared()
        with pytest.raises(SimulatedCrash):
            body(disk, file, directory)
        left[phase] = disk
    assert [len(left[phase].unsynced().micros) for phase in Phase] == [3, 3, 0]
    partly = CrashPoint(7, Phase.DURING, CrashKind.POWER_CUT, SurvivorSet(lost=(1, 2)))
    assert crash_image(left[Phase.DURING], partly).files() == {"/f": b"NEW"}


def test_a_kill_during_a_write_keeps_a_prefix_that_ends_at_a_page_boundary() -> None:
    def call(disk: Disk, file: Inode, directory: Inode) -> None:
        disk.write(file, 4000, b"x" * 9000, "/f")

    point = CrashPoint(5, Phase.DURING, CrashKind.KILL)
    sizes = {}
    for kept in (1, 95, 96, 4191, 4192, 8287, 8288, 8999, 9000, 0):
        disk, _ = _crashed(call, Phase.DURING, kept)
        sizes[kept] = len(crash_image(disk, point).files()["/f"])
    assert sizes == {
        1: 3, 95: 3, 96: 4096, 4191: 4096, 4192: 8192, 8287: 8192,
        8288: 12288, 8999: 12288, 9000: 13000, 0: 13000,
    }  # fmt: skip


def test_a_kill_during_a_write_within_one_page_is_all_or_nothing() -> None:
    write = Write("/f", 2, 10, b"x" * 4086, 0, 0)
    assert list(page_prefixes(write, POSIX)) == []
    assert [page_prefix(write, kept) for kept in (1, 4085, 4086)] == [0, 0, 4086]


def test_page_prefixes_are_the_kept_bytes_that_leave_a_part() -> None:
    write = Write("/f", 2, 4000, b"x" * 8288, 0, 0)
    assert list(page_prefixes(write, SCC)) == [96, 4192]
    assert [page_prefix(write, kept) for kept in page_prefixes(write, SCC)] == [96, 4192]


def test_a_kill_during_a_direct_write_leaves_a_part_only_where_the_model_says_so() -> None:
    write = Write("/f", 2, 4000, b"x" * 8288, 0, 0, direct=True)
    assert list(page_prefixes(write, SCC)) == []
    assert list(page_prefixes(write, POSIX)) == [96, 4192]


def test_after_a_power_cut_during_a_write_all_of_it_is_unsynced() -> None:
    def call(disk: Disk, file: Inode, directory: Inode) -> None:
        disk.write(file, 0, b"N" * 1024, "/f")

    disk, _ = _crashed(call, Phase.DURING)
    torn = SurvivorSet(lost=(1,), torn=((0, 100),))
    point = CrashPoint(5, Phase.DURING, CrashKind.POWER_CUT, torn)
    assert crash_image(disk, point).files() == {"/f": b"N" * 100 + b"\0" * 924}


def test_a_power_cut_refuses_survivors_that_the_model_does_not_allow() -> None:
    disk = Disk(model=SCC)
    disk.interposer = CrashCounter(disk, 2, Phase.AFTER)
    file = disk.create(disk.root, "f", _FILE, "/f")
    with pytest.raises(SimulatedCrash):
        disk.write(file, 0, b"x", "/f")
    point = CrashPoint(2, Phase.AFTER, CrashKind.POWER_CUT, SurvivorSet(lost=(0,)))
    with pytest.raises(HarnessError, match="does not allow"):
        crash_image(disk, point)


def test_operations_before_the_crash_point_are_not_affected() -> None:
    disk, file, _ = _prepared()
    disk.interposer = counter = CrashCounter(disk, 3, Phase.BEFORE)
    disk.write(file, 0, b"a", "/f")
    disk.write(file, 1, b"b", "/f")
    with pytest.raises(SimulatedCrash, match="before operation 7, Resize /f"):
        disk.resize(file, 0, "/f")
    assert counter.hit is not None
    resize = counter.hit.operation
    assert isinstance(resize, Resize)
    assert counter.hit == Hit(Resize("/f", file.number, 0, 3, resize.now_ns), 7, Phase.BEFORE)
    assert disk.snapshot().files()["/f"] == b"abd"


def test_the_counter_counts_down_to_the_crash() -> None:
    disk, file, _ = _prepared()
    disk.interposer = counter = CrashCounter(disk, 3, Phase.AFTER)
    remaining = [counter.remaining]
    for _ in range(2):
        disk.write(file, 0, b"x", "/f")
        remaining.append(counter.remaining)
    with pytest.raises(SimulatedCrash, match="after operation 7, Sync /f"):
        disk.sync(file.number, "/f")
    assert [*remaining, counter.remaining] == [3, 2, 1, 0]


def test_a_counter_without_an_operation_to_crash_at_is_refused() -> None:
    with pytest.raises(HarnessError, match="remaining=0"):
        CrashCounter(Disk(), 0, Phase.AFTER)


class _Refusing:
    """Refuses every write, and records the calls."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, operation: Operation, number: int) -> Operation:
        self.seen.append(f"before {number}")
        if isinstance(operation, Write):
            raise OSError(errno.ENOSPC, "full")
        return operation

    def after(self, operation: Operation, number: int) -> None:
        self.seen.append(f"after {number}")

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return data.upper()


def test_the_counter_forwards_to_the_interposer_that_it_replaces() -> None:
    disk, file, _ = _prepared()
    disk.interposer = refusing = _Refusing()
    disk.interposer = CrashCounter(disk, 2, Phase.AFTER)
    disk.resize(file, 0, "/f")
    with pytest.raises(OSError, match="full"):
        disk.write(file, 0, b"x", "/f")
    with pytest.raises(SimulatedCrash):
        disk.resize(file, 9, "/f")
    assert refusing.seen == ["before 5", "after 5", "before 6", "before 6", "after 6"]
    assert disk.interposer.reading("/f", file.number, 0, b"x") == b"X"


def test_reading_is_no_crash_point() -> None:
    disk, file, _ = _prepared()
    disk.interposer = counter = CrashCounter(disk, 1, Phase.BEFORE)
    assert counter.reading("/f", file.number, 0, b"old") == b"old"
    assert counter.hit is None


def test_a_barrier_that_is_to_fail_has_not_failed_at_a_crash_during_it() -> None:
    """A failed barrier of btrfs drops the pages; here the kill comes first."""
    disk, file, _ = _prepared()
    FaultInjector(FaultPlan.parse("fsync * EIO:btrfs")).install(disk)
    disk.write(file, 0, b"NEW", "/f")
    disk.interposer = CrashCounter(disk, 1, Phase.DURING)
    with pytest.raises(SimulatedCrash):
        disk.sync(file.number, "/f")
    assert disk.snapshot().files()["/f"] == b"NEW"
