"""``explore`` runs a workload once, and checks every distinct crash of it once."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import CrashKind, CrashPoint, Phase
from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from oracles.history import History, Known
from oracles.violation import LostAck, UnreadableAfterCrash, Violation
from powercut.explorer.explore import explore, explore_models
from powercut.explorer.journals import Journals
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.verdicts import Exploration
from sim.disk.cache.operation import Operation, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from sim.errors import EscapedSimulation, HarnessError, SimulatedCrash


def _write(disk: Process, path: str, data: bytes) -> None:
    descriptor = disk.open(path, os.O_CREAT | os.O_WRONLY)
    disk.pwrite(descriptor, data, 0)
    disk.close(descriptor)


def _sync(disk: Process, path: str) -> None:
    descriptor = disk.open(path, os.O_RDONLY)
    disk.fsync(descriptor)
    disk.close(descriptor)


def _accept(_: Process, __: Known) -> None:
    pass


def test_workload_runs_once() -> None:
    runs = []

    def workload(disk: Process, ack: History) -> None:
        ack("started")
        runs.append(disk)
        for number in range(10):
            _write(disk, f"/{number}", b"x")

    explore(workload, _accept, limits=Limits(states_per_point=64))
    assert len(runs) == 1


def test_every_operation_is_a_crash_point_of_both_kinds() -> None:
    seen: list[frozenset[str]] = []

    def workload(disk: Process, ack: History) -> None:
        ack("started")
        for name in "abc":
            _write(disk, f"/{name}", b"x")

    def check(disk: Process, _: Known) -> None:
        seen.append(frozenset(disk.listdir("/")))

    result = explore(workload, check, "scc")
    assert result.operations == 6
    assert result.states == len(seen) == 14
    assert set(seen) == {
        frozenset(), frozenset("a"), frozenset("ab"), frozenset("abc"),
    }  # fmt: skip


def test_states_are_those_of_an_exhaustive_count_done_by_hand() -> None:
    """One file of two bytes under posix: absent, empty, 00, stale, torn, whole; and three kills
    of four operations, whose disks differ: nothing, an empty file, the whole file.
    """

    def workload(disk: Process, ack: History) -> None:
        ack("started")
        _write(disk, "/f", b"ab")

    result = explore(workload, _accept, "posix")
    assert result.exhaustive
    assert result.states == 6 + 3


def test_every_long_write_can_be_killed_between_its_pages() -> None:
    sizes: set[tuple[str, int]] = set()

    def workload(disk: Process, ack: History) -> None:
        ack("started")
        _write(disk, "/f", b"x" * 10_000)
        _write(disk, "/g", b"x" * 5_000)
        _sync(disk, "/f")
        _write(disk, "/h", b"x" * 9_000)

    def check(disk: Process, _: Known) -> None:
        sizes.update((name, disk.stat(name).st_size) for name in disk.listdir("/"))

    explore(workload, check, "scc")
    ends = {"f": (0, 4096, 8192, 10_000), "g": (0, 4096, 5000), "h": (0, 4096, 8192, 9000)}
    assert sizes == {(name, size) for name in ends for size in ends[name]}


def test_states_are_built_anew_after_a_failed_barrier() -> None:
    """A failed barrier drops data that later data depended on, so it may allow new states."""

    def built(plan: str) -> int:
        def workload(disk: Process, ack: History) -> None:
            ack("started")
            disk.disk.interposer = FaultInjector(FaultPlan.parse(plan))
            _write(disk, "/f", b"x")
            with suppress(OSError):
                _sync(disk, "/f")

        return explore(workload, _accept, "ext4-ordered").built

    assert built("fsync * #1 EIO:ext4") > built("fsync * #1 EINTR")


class FilesAfterEachOperation:
    """Fails the first fsync of ``/f``; ``seen`` has the files after each operation, from 1."""

    def __init__(self, disk: Disk, policy: SyncFailure) -> None:
        self.seen = [disk.snapshot().files()]
        self._disk = disk
        self._faults = FaultInjector(FaultPlan.parse(f"fsync /f #1 EIO:{policy}"))
        self.before = self._faults.before
        self.reading = self._faults.reading

    def after(self, operation: Operation, number: int) -> None:
        self._faults.after(operation, number)
        self.seen.append(self._disk.snapshot().files())


@pytest.mark.parametrize("policy", SyncFailure)
def test_kill_leaves_the_page_cache_also_after_a_failed_barrier(policy: SyncFailure) -> None:
    disk = Disk()
    process, history = Process(disk), History(lambda: disk.operations)
    watching = disk.interposer = FilesAfterEachOperation(disk, policy)
    _write(process, "/f", b"old")
    process.sync()
    _write(process, "/f", b"NEW")
    with suppress(OSError):
        _sync(process, "/f")
    _write(process, "/g", b"x")
    _write(process, "/f", b"y" * 5000)

    kept = watching.seen[-2]["/f"]
    assert kept == b"NEW"
    between = {**watching.seen[-2], "/f": b"y" * 4096}
    journals = Journals(history, Limits(), lambda _key, _depth: True)
    kills = [
        crash
        for crash in journals.crashes(disk.journal, disk.model)
        if crash.crashes[0].kind is CrashKind.KILL
    ]
    # Only the barrier that made everything durable is no crash point: it changes nothing else.
    assert [kill.crashes[0].operation for kill in kills] == [1, 1, 2, 4, 5, 6, 7, 8, 8]
    for kill in kills:
        (point,) = kill.crashes
        whole = watching.seen[0 if point.phase is Phase.BEFORE else point.operation]
        assert kill.image.files() == (between if point.phase is Phase.DURING else whole)


def _without_directory_sync(disk: Process, ack: History) -> None:
    disk.close(disk.open("/f", os.O_CREAT | os.O_WRONLY))
    _sync(disk, "/f")
    ack({"/f": b""})


def test_default_check_finds_a_lost_acknowledgement_and_its_crash_point() -> None:
    result = explore(_without_directory_sync, model="posix")
    assert not result.safe
    failure = result.failures[0]
    assert isinstance(failure.violation, LostAck)
    assert failure.crashes == (CrashPoint.parse("2 after power-cut lost=0"),)


def test_verdict_names_the_models() -> None:
    safe = {
        name for name, verdict in explore_models(_without_directory_sync).items() if verdict.safe
    }
    assert safe == set(MODELS) - {"posix"}


def test_a_failure_can_be_repeated_at_its_crash_point() -> None:
    point = explore(_without_directory_sync, model="posix").failures[0].crashes[0]
    disk = Disk()
    disk.interposer = CrashCounter(disk, point.operation, point.phase)
    with pytest.raises(SimulatedCrash):
        _without_directory_sync(Process(disk), History(lambda: disk.operations))
    image = disk.power_cut(point.survivors)
    assert image.files() == {}


def test_a_workload_that_does_nothing_on_the_disk_has_no_verdict() -> None:
    def check(_: Process, __: Known) -> None:
        raise Violation("never right")

    with pytest.raises(HarnessError, match="made no operation on the disk"):
        explore(lambda _, ack: ack("done"), check)


def test_a_workload_that_acknowledges_nothing_is_never_safe() -> None:
    def workload(disk: Process, _: History) -> None:
        _write(disk, "/f", b"x")

    with pytest.raises(HarnessError, match="nothing was acknowledged, so nothing can be lost"):
        explore(workload, _accept)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"/f": "text"}, "is text, 'text'; a file holds bytes"),
        ({"/f": 7}, "is 7; acknowledge bytes, or None"),
        ({7: b"x"}, "path 7 is not a text"),
    ],
    ids=str,
)
def test_a_value_of_a_wrong_type_is_refused(value: object, sentence: str) -> None:
    def workload(disk: Process, ack: History) -> None:
        _write(disk, "/f", b"x")
        ack(value)

    with pytest.raises(HarnessError, match=sentence):
        explore(workload)


def test_a_workload_with_a_process_may_not_write_to_the_real_disk(tmp_path: Path) -> None:
    def workload(disk: Process, _: History) -> None:
        _write(disk, "/f", b"x")
        with suppress(Exception):
            (tmp_path / "f").write_bytes(b"x")

    with pytest.raises(EscapedSimulation, match=r"real disk, at .*test_explore"):
        explore(workload)
    assert not (tmp_path / "f").exists()


def test_value_is_in_flight_until_its_acknowledgement() -> None:
    known: set[Known] = set()

    def workload(disk: Process, ack: History) -> None:
        _write(disk, "/f", b"x")
        ack("first")
        _write(disk, "/g", b"x")

    def check(_: Process, now: Known) -> None:
        known.add(now)

    explore(workload, check, "scc")
    assert known == {Known((), ("first",)), Known(("first",), ())}


def test_any_exception_of_a_check_is_a_recovery_that_fails() -> None:
    def check(disk: Process, _: Known) -> None:
        disk.stat("/f")

    result = explore(_without_directory_sync, check, "scc")
    assert isinstance(result.failures[0].violation, UnreadableAfterCrash)
    assert "FileNotFoundError" in str(result.failures[0].violation)
    line = check.__code__.co_firstlineno + 1
    at = f"tests/unit/explorer/test_explore.py:{line}"
    assert result.failures[0].violation.evidence == {"at": at}


def test_harness_error_of_a_check_is_not_a_verdict() -> None:
    def check(_: Process, __: Known) -> None:
        raise HarnessError("the check is wrong")

    with pytest.raises(HarnessError, match="the check is wrong"):
        explore(_without_directory_sync, check)


def test_workload_that_fails_by_itself_is_a_harness_error() -> None:
    def workload(disk: Process, _: History) -> None:
        disk.stat("/missing")

    with pytest.raises(HarnessError, match="failed before any crash: FileNotFoundError"):
        explore(workload)


def test_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(HarnessError, match="unknown persistence model 'ext3'; known are scc, "):
        explore(_without_directory_sync, model="ext3")


def test_default_check_of_a_workload_with_a_process_takes_any_path() -> None:
    def workload(process: Process, ack: History) -> None:
        process.close(process.open("f", os.O_CREAT | os.O_WRONLY))
        process.sync()
        ack({"f": b""})

    assert explore(workload).safe


def test_default_check_wants_mappings() -> None:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("/d")
        ack("done")

    with pytest.raises(HarnessError, match="acknowledge such a mapping"):
        explore(workload)


def _many_unsynced(disk: Process, ack: History) -> None:
    ack("started")
    for number in range(12):
        _write(disk, f"/{number}", b"x")


def test_too_many_states_are_sampled_and_the_verdict_shows_it() -> None:
    limits = Limits(states_per_point=50, engine=Engine.BRUTE)
    result = explore(_many_unsynced, _accept, "posix", limits)
    assert not result.exhaustive
    assert str(result) == f"posix: safe of {result.states} states, sampled"


def test_sampling_is_the_same_every_time() -> None:
    def run() -> tuple[int, int]:
        limits = Limits(states_per_point=50, seed=7, engine=Engine.BRUTE)
        result = explore(_many_unsynced, _accept, "posix", limits)
        return result.states, result.built

    assert run() == run()


# -- crashes inside recovery ------------------------------------------------------------------


def _install(disk: Process, ack: History) -> None:
    """Write a note, then the file that it announces: recovery finishes the rest."""
    _write(disk, "/note", b"x")
    _sync(disk, "/note")
    _sync(disk, "/")
    ack("noted")


def _finish(disk: Process, known: Known) -> None:
    """Write the file of the note; the second step is only right if the first one is durable."""
    names = set(disk.listdir("/"))
    if "done" in names and "note" in names:
        raise Violation("done before the note was taken away")
    if known.acknowledged and not names:
        raise LostAck("neither note nor result")
    if "note" in names:
        disk.unlink("/note")
        _write(disk, "/done", b"x")


def _explore_recovery(nested: int) -> Exploration:
    return explore(_install, _finish, "posix", Limits(nested=nested))


def test_recovery_is_crashed_too_if_asked() -> None:
    assert _explore_recovery(nested=0).safe
    result = _explore_recovery(nested=1)
    assert not result.safe
    first = result.failures[0]
    assert len(first.crashes) == 2


def test_kill_leaves_unsynced_operations_to_a_later_power_cut() -> None:
    """What recovery read after a kill is not durable for having been read."""

    def workload(disk: Process, ack: History) -> None:
        _write(disk, "/f", b"x")
        ack.attempt("f")

    def check(disk: Process, _: Known) -> None:
        if "seen" in disk.listdir("/") and "f" not in disk.listdir("/"):
            raise LostAck("recovery built on a file that was not durable")
        if "f" in disk.listdir("/"):
            _write(disk, "/seen", b"x")

    result = explore(workload, check, "posix", Limits(nested=1))
    kinds = {tuple(crash.kind for crash in failure.crashes) for failure in result.failures}
    assert (CrashKind.KILL, CrashKind.POWER_CUT) in kinds
    assert all(failure.crashes[0].phase is not Phase.DURING for failure in result.failures)
