"""The lazy engine behind ``explore``: verdicts, failures and mistakes of a check."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from faults.crash_point import CrashKind
from oracles.history import History, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.crash_state import image_after
from powercut.explorer.explore import explore, judged
from powercut.explorer.lazy import lazy_explorer
from powercut.explorer.lazy.boot import LazyDisk
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Exploration
from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.undecided.progress import UNLIMITED
from sim.disk.disk import Disk
from sim.errors import HarnessError
from tests.litmus.observer import FailedSyncs
from tests.unit.explorer.stateful_check import reads_another_file_each_time

LAZY = Limits(engine=Engine.LAZY)
BRUTE = Limits(engine=Engine.BRUTE)


def _write(process: Process, path: str, content: bytes) -> None:
    descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, content)
    process.close(descriptor)


def _read(process: Process, path: str) -> bytes:
    descriptor = process.open(path, os.O_RDONLY)
    content = process.read(descriptor, 1 << 20)
    process.close(descriptor)
    return content


def _replaced(process: Process, ack: History) -> None:
    """Replace a file three times, without a barrier."""
    for number in range(3):
        _write(process, "/new", b"%d" % number * 5)
        process.replace("/new", "/file")
        ack(number)


def _whole(process: Process, _known: Known) -> None:
    if "file" in process.listdir("/") and _read(process, "/file")[:5] not in _CONTENTS:
        raise Violation("the file has a mixture of contents")


_CONTENTS = [b"%d" % number * 5 for number in range(3)]


def test_a_recovery_finds_its_own_changes_among_the_files_of_the_disk() -> None:
    def check(process: Process, _known: Known) -> None:
        _write(process, "/recovered", b"yes")
        assert process.disk.files()["/recovered"] == b"yes"

    found = explore(_replaced, check, "ext4", LAZY)
    assert (found.safe, found.is_lazy) == (True, True)


@pytest.mark.parametrize("model", MODELS)
def test_both_engines_have_the_same_verdict(model: str) -> None:
    lazy, brute = (explore(_replaced, _whole, model, limits) for limits in (LAZY, BRUTE))
    assert (lazy.safe, lazy.is_lazy, brute.is_lazy) == (brute.safe, True, False)
    assert lazy.decided >= lazy.states
    assert {str(each.violation) for each in lazy.failures} == {
        str(each.violation) for each in brute.failures
    }


def test_a_failure_is_a_crash_that_can_be_built_again() -> None:
    found = explore(_replaced, _whole, "posix", LAZY)
    for failure in found.failures[:20]:
        image = image_after(found.workload.journal, found.model, failure.crashes, lambda _: None)
        again = found.checker.violation(
            Disk(image, found.model), found.workload.history.known(failure.entries)
        )
        assert again is not None
        assert str(again) == str(failure.violation)


def _announced(process: Process, ack: History) -> None:
    """Write a note, then what it announces, which the recovery finishes."""
    _write(process, "/note", b"x" * 700)
    process.sync()
    ack("x")
    _write(process, "/done", b"x" * 700)
    process.unlink("/note")


def _finish(process: Process, known: Known) -> None:
    """Rewrite a file that a note announces; the note is removed without a barrier before it."""
    if not known.acknowledged:
        return
    if "note" in process.listdir("/"):
        if process.access("/done", os.F_OK):
            process.unlink("/done")
        _write(process, "/done", _read(process, "/note"))
        process.unlink("/note")
    elif _read(process, "/done") != b"x" * 700:
        raise LostAck("x")


def test_a_crash_of_the_recovery_is_found_by_both_engines() -> None:
    def nested(engine: Engine) -> Exploration:
        return explore(_announced, _finish, "ext4-ordered", Limits(nested=1, engine=engine))

    lazy, brute = nested(Engine.LAZY), nested(Engine.BRUTE)
    assert not brute.safe
    assert lazy.is_lazy
    assert min(len(each.crashes) for each in lazy.failures) == 1
    assert {type(each.violation) for each in lazy.failures} == {
        type(each.violation) for each in brute.failures
    }


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_failed_sync_of_the_recovery_is_decided(policy: SyncFailure) -> None:
    def recover(process: Process, _known: Known) -> None:
        process.disk.interposer = FailedSyncs(policy)
        if "note" in process.listdir("/"):
            _write(process, "/done", _read(process, "/note"))
            with suppress(OSError):
                process.fsync(process.open("/done", os.O_RDONLY))

    found = explore(_announced, recover, "ext4-ordered", Limits(nested=1, engine=Engine.LAZY))
    assert found.is_lazy


@pytest.mark.parametrize("engine", [Engine.LAZY, Engine.BRUTE])
def test_a_kill_that_leaves_one_of_two_lost_pages_is_found(engine: Engine) -> None:
    def drop_first(process: Process, ack: History) -> None:
        _write(process, "/f", b"old.." * 4096)
        process.sync()
        ack("old")
        process.disk.interposer = FailedSyncs(SyncFailure.XFS)
        descriptor = process.open("/f", os.O_RDWR)
        process.pwrite(descriptor, b"1", 0)
        process.pwrite(descriptor, b"2", 4096)
        with suppress(OSError):
            process.fsync(descriptor)
        process.posix_fadvise(descriptor, 0, 4096, os.POSIX_FADV_DONTNEED)

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            content = _read(process, "/f")
            if content[4096:4097] == b"2" and content[:1] != b"1":
                raise LostAck("1")

    (failure,) = explore(drop_first, check, "scc", Limits(engine=engine)).failures
    assert failure.crashes[0].kind is CrashKind.KILL


@pytest.mark.parametrize("engine", [Engine.LAZY, Engine.BRUTE])
def test_a_kill_after_one_of_two_writes_to_an_unwritten_block_is_found(engine: Engine) -> None:
    def write_again(process: Process, _ack: History) -> None:
        process.disk.interposer = FailedSyncs(SyncFailure.EXT4)
        descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
        process.pwrite(descriptor, b"??", 0)
        with suppress(OSError):
            process.fsync(descriptor)
        process.pwrite(descriptor, b"1", 0)
        process.pwrite(descriptor, b"2", 1)

    def check(process: Process, _known: Known) -> None:
        if process.access("/f", os.F_OK) and _read(process, "/f") == b"1?":
            raise LostAck("2")

    (failure,) = explore(write_again, check, "scc", Limits(engine=engine)).failures
    assert failure.crashes[0].kind is CrashKind.KILL


@pytest.mark.parametrize("engine", [Engine.LAZY, Engine.BRUTE])
def test_what_only_a_power_cut_right_after_a_barrier_leaves_is_found(engine: Engine) -> None:
    def extend(process: Process, _ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
        process.fsync(descriptor)
        process.mkdir("/d")
        process.ftruncate(descriptor, 4)
        process.fsync(descriptor)
        process.sync()

    def check(process: Process, _known: Known) -> None:
        names = process.listdir("/")
        if "f" in names and process.stat("/f").st_size and "d" not in names:
            raise LostAck("d")

    (failure,) = explore(extend, check, "btrfs", Limits(engine=engine)).failures
    assert failure.crashes[0].operation == 5


def test_a_check_that_reads_nothing_is_executed_once_for_each_acknowledgement() -> None:
    executions: list[int] = []
    found = explore(_replaced, lambda *_: executions.append(1), "posix", LAZY)
    assert (found.states, found.how) == (4, "exhaustive")
    assert len(executions) == 2 * 4  # each is repeated, in case the check keeps state


def test_torn_pieces_are_left_out_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    def hows(limits: dict[int, int]) -> tuple[str, bool, int]:
        monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", limits)
        found = explore(_two_small_files, _reads_all, "posix", LAZY)
        return found.how, found.exhaustive, found.states

    whole = hows({UNLIMITED: 100_000})
    once = hows({UNLIMITED: 1, 1: 100_000})
    never = hows({UNLIMITED: 1, 1: 1, 0: 100_000})
    assert whole[:2] == ("exhaustive", True)
    assert once[:2] == ("exhaustive, at most 1 torn sector", False)
    assert never[:2] == ("exhaustive, no torn sector", False)
    assert whole[2] > once[2] > never[2]


def _two_small_files(process: Process, ack: History) -> None:
    _write(process, "/a", b"abc")
    _write(process, "/b", b"def")
    ack("both")


def _reads_all(process: Process, _known: Known) -> None:
    for name in process.listdir("/"):
        _read(process, f"/{name}")


def test_an_exploration_that_takes_too_long_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 1: 1, 0: 1})
    limits = Limits(states_per_point=16, engine=Engine.AUTO)
    found = explore(_replaced, _reads_all, "posix", limits)
    assert (found.is_lazy, found.how) == (False, "sampled")


# -- checks that the engine cannot answer, or that it refuses ------------------------------------


def _reads_blocks(process: Process, _known: Known) -> None:
    if process.access("/file", os.F_OK):
        assert process.stat("/file").st_blocks < 100


def _swallows(process: Process, known: Known) -> None:
    with suppress(BaseException):
        _reads_blocks(process, known)


@pytest.mark.parametrize("check", [_reads_blocks, _swallows])
def test_a_check_that_needs_whole_images_gets_them(check: Callable[..., None]) -> None:
    limits = Limits(states_per_point=16, engine=Engine.LAZY)
    found = explore(_replaced, check, "posix", limits)
    assert (found.is_lazy, found.how) == (False, "sampled")


def test_a_failure_that_its_crash_image_does_not_show_is_none() -> None:
    def check(process: Process, _known: Known) -> None:
        assert not isinstance(process.disk, LazyDisk)

    limits = Limits(states_per_point=16, engine=Engine.LAZY)
    found = explore(_replaced, check, "posix", limits)
    assert (found.safe, found.is_lazy, found.how) == (True, False, "sampled")


def test_a_check_with_state_is_refused_with_both_questions() -> None:
    text = "after the same 2 answers .* asked for .* and now for entry '.*' of directory 1; it must"
    with pytest.raises(HarnessError, match=text):
        explore(_replaced_and_numbered, reads_another_file_each_time, "posix", LAZY)


def _replaced_and_numbered(process: Process, ack: History) -> None:
    _write(process, "/0", b"x")
    _replaced(process, ack)


def test_a_check_that_reads_less_than_before_is_refused() -> None:
    executions: list[int] = []

    def check(process: Process, _known: Known) -> None:
        executions.append(1)
        if len(executions) < 3:
            process.access("/file", os.F_OK)

    with pytest.raises(HarnessError, match=r"asked for entry 'file' .* now for nothing more"):
        explore(_replaced, check, "posix", LAZY)


# -- unmodified programs -------------------------------------------------------------------------


def _saved(ack: History) -> None:
    for number in range(2):
        with open("/disk/new", "wb") as file:
            file.write(b"%d" % number * 5)
        os.replace("/disk/new", "/disk/file")
        ack(number)


def _file_is_whole(_known: Known) -> None:
    path = Path("/disk/file")
    if path.exists() and path.read_bytes() not in _CONTENTS:
        raise Violation("the file has a mixture of contents")


@pytest.mark.parametrize("model", ["btrfs"])
def test_unmodified_programs_have_the_same_verdict(model: str) -> None:
    lazy, brute = (explore(_saved, _file_is_whole, model, limits) for limits in (LAZY, BRUTE))
    assert (lazy.is_lazy, lazy.safe, lazy.states) == (True, brute.safe, lazy.states)
    assert {str(each.violation) for each in lazy.failures} == {
        str(each.violation) for each in brute.failures
    }


def _inserted(ack: History) -> None:
    connection = sqlite3.connect("/disk/db", isolation_level=None)
    connection.execute("PRAGMA synchronous=EXTRA")
    connection.execute("CREATE TABLE t (x)")
    ack("table")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()


def _database_is_whole(known: Known) -> None:
    connection = sqlite3.connect("/disk/db", isolation_level=None)
    if known.acknowledged and connection.execute("SELECT count(*) FROM t").fetchone()[0] > 1:
        raise LostAck("row")
    connection.close()


def test_unmodified_sqlite_is_decided_with_crashes_of_its_recovery() -> None:
    limits = Limits(nested=1, engine=Engine.LAZY)
    found = explore(_inserted, _database_is_whole, "ext4-ordered", limits)
    assert (found.is_lazy, found.safe, found.how) == (True, True, "exhaustive")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(HarnessError, match="unknown engine 'fast'; known are brute, lazy, auto"):
        Limits(engine=cast("Engine", "fast"))


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.inf, math.nan, 1e10])
def test_a_timeout_that_is_no_time_is_refused(timeout: float) -> None:
    with pytest.raises(HarnessError, match=r"timeout is .+ and must be a number of seconds above"):
        Limits(timeout=timeout)


# -- processes and estimates ----------------------------------------------------------------------


@pytest.mark.parametrize(("check", "model"), [(_whole, "posix"), (_finish, "ext4-ordered")])
def test_the_result_is_the_same_in_one_process_and_in_several(
    check: Callable[[Process, Known], None], model: str
) -> None:
    workload, nested = (_replaced, 0) if check is _whole else (_announced, 1)
    limits = Limits(nested=nested, engine=Engine.LAZY)
    recorded = record(workload, MODELS[model], Image.empty())
    one, three = (
        judged(recorded, check, [MODELS[model]], limits, deciding=number)[model]
        for number in (1, 3)
    )
    assert (one.is_lazy, one.states, one.decided) == (True, three.states, three.decided)
    assert [each.crashes for each in one.failures] == [each.crashes for each in three.failures]
    assert [str(each.violation) for each in one.failures] == [
        str(each.violation) for each in three.failures
    ]


def test_an_attempt_that_cannot_succeed_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    executions: list[int] = []

    def check(process: Process, known: Known) -> None:
        executions.append(1)
        _reads_all(process, known)

    def ten_files(process: Process, ack: History) -> None:
        for number in range(10):
            _write(process, f"/{number}", b"x")
        ack("all")

    limits = Limits(engine=Engine.BRUTE, states_per_point=1, samples=1)
    built = explore(ten_files, check, "btrfs", limits).states
    executions.clear()
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 1: 1, 0: 100})
    found = explore(ten_files, check, "btrfs", replace(limits, engine=Engine.AUTO))
    assert found.how == "sampled"
    assert len(executions) - built < 65
