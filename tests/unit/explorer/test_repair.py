"""The repair keeps no unnecessary barrier, and refuses none because of a changed sample."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer import repair as module
from powercut.explorer.explore import judged
from powercut.explorer.missing_barrier import Synced
from powercut.explorer.recorded_workload import record
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import EXT4

FAILURES = ("first", "second", "third")


class Searched:
    """Finds the barriers a, b and c in this order; each failure is prevented by some of them."""

    preventing: tuple[str, ...] = ()

    def __init__(self, *_: object) -> None:
        pass

    def left(self, barriers: Collection[str]) -> tuple[str, ...]:
        return FAILURES[len(barriers) :]

    def better(self, barriers: tuple[str, ...], _left: object) -> tuple[Any, Any]:
        more = (*barriers, "abc"[len(barriers)])
        return more, self.left(more)

    def moments(self, barriers: Collection[str]) -> set[int]:
        return {
            number
            for number, preventing in enumerate(self.preventing)
            if not set(preventing) & set(barriers)
        }


@pytest.mark.parametrize(
    ("preventing", "kept"),
    [
        (("c",), "c"),
        (("a",), "a"),
        (("abc",), "c"),
        (("a", "c"), "ac"),
        (("ab", "bc"), "b"),
        (("a", "b", "c"), "abc"),
    ],
)
def test_every_barrier_that_the_others_make_unnecessary_is_removed(
    preventing: tuple[str, ...], kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_Search", Searched)
    monkeypatch.setattr(Searched, "preventing", preventing)
    nothing: Any = None
    found: Any = module.repair(nothing, nothing)
    assert found.barriers == tuple(kept)


def test_a_barrier_is_kept_that_only_shows_failures_that_the_sample_has_left_out() -> None:
    def write_two_files(process: Process, ack: History) -> None:
        first, second = (process.open(f"/{name}", os.O_CREAT | os.O_WRONLY) for name in "ab")
        process.sync()
        process.write(first, b"new")
        process.write(second, b"new")
        ack("new")

    def check(process: Process, known: Known) -> None:
        for name in "ba" if known.acknowledged else "":
            with process.open_file(f"/{name}", "rb") as file:
                if file.read() != b"new":
                    raise LostAck(name)

    found = judged(record(write_two_files, EXT4, Image.empty()), check, [EXT4])["ext4"]
    of_a, *_ = (each for each in found.failures if each.violation.statement == "a")
    sampled = replace(found, failed=1, failures=[of_a], exhaustive=False)
    repaired = module.repair(sampled, found.checker.explore)
    assert [each.synced for each in repaired.barriers] == [Synced.FILE, Synced.FILE]
    assert repaired.left == ()
