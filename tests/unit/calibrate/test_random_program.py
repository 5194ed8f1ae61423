"""Random programs of a calibration."""

from __future__ import annotations

from collections import Counter

import pytest

from powercut.calibrate.names import Names
from powercut.calibrate.program import Call, Caller
from powercut.calibrate.random_program import random_program
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

SEEDS = range(600)


def test_program_of_a_seed_is_always_the_same() -> None:
    assert random_program(3) == random_program(3)
    assert random_program(4) != random_program(3)


def test_set_up_succeeds_and_most_calls_do() -> None:
    failed = total = 0
    for seed in SEEDS:
        program = random_program(seed)
        caller = Caller(Process(Disk()), lambda path: f"/{path}")
        assert [caller.do(call) for call in program.setup] == [None] * len(program.setup)
        results = [caller.do(call) for call in program.calls]
        failed += sum(result is not None for result in results)
        total += len(results)
    assert failed < total / 20


def test_programs_have_three_to_eight_calls_beside_background_work() -> None:
    lengths = Counter(sum(call[0] != "bg" for call in random_program(seed).calls) for seed in SEEDS)
    assert set(lengths) == set(range(3, 9))


def test_every_call_and_every_background_work_occurs() -> None:
    calls = [call for seed in SEEDS for call in random_program(seed).calls]
    assert {call[0] for call in calls} == {
        *("creat", "write", "append", "otrunc", "trunc", "falloc", "fsync", "fdatasync", "sync"),
        *("rename", "link", "unlink", "symlink", "mkdir", "rmdir", "open"),
        *("hwrite", "htrunc", "hfalloc", "hfsync", "hfdatasync", "tmpfile", "hlink"),
        *("chmod", "utime", "bg"),
    }
    assert ["fdatasync", ""] in calls
    work = {call[1] for call in calls if call[0] == "bg"}
    assert work == {"commit", "logsync", "syncfs", "flush", "part", "tick"}


def test_letters_of_one_program_differ() -> None:
    for seed in SEEDS:
        program = random_program(seed)
        letters = [
            call[-1]
            for call in (*program.setup, *program.calls)
            if call[0] in {"write", "append", "otrunc", "hwrite"}
        ]
        assert len(set(letters)) == len(letters)
        assert "S" not in letters


@pytest.mark.parametrize(
    ("calls", "files"),
    [
        ([["creat", "f"], ["rename", "f", "g"]], ["g"]),
        ([["mkdir", "d"], ["creat", "d/f"], ["rename", "d", "e"]], ["e/f"]),
        ([["creat", "f"], ["link", "f", "g"], ["unlink", "f"]], ["g"]),
        ([["creat", "f"], ["creat", "g"], ["rename", "f", "g"]], ["g"]),
    ],
    ids=["rename", "rename-directory", "link-and-unlink", "replace"],
)
def test_names_follow_the_calls(calls: list[Call], files: list[str]) -> None:
    names = Names()
    for call in calls:
        names.apply(call)
    assert names.files() == files


def test_directory_cannot_be_moved_into_itself_or_over_one_with_entries() -> None:
    names = Names()
    for call in (["mkdir", "d"], ["mkdir", "e"], ["creat", "e/f"]):
        names.apply(call)
    assert not names.can_move_directory("d", "d/s")
    assert not names.can_move_directory("d", "e")
    assert names.can_move_directory("e", "d")
