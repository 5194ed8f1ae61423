"""A kill leaves a part of a direct write under some models only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faults.crash_point import CrashPoint, Phase
from oracles.history import History
from powercut.explorer.journals import Journals
from powercut.explorer.lazy.crash_sites import crash_sites
from powercut.explorer.limits import Limits
from powercut.fuse.crash_search import search
from sim.disk.calls.process import Process
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared

TORN_ON = ("ext4-journal", "btrfs", "posix")
_OLD, _NEW = "A12288", "B12288"
_START = prepared(lambda calls: calls.write("f", _OLD))

Points = Callable[[Journal, PersistenceModel], Iterator[CrashPoint]]


def _lazy(journal: Journal, model: PersistenceModel) -> Iterator[CrashPoint]:
    return (each.point for each in crash_sites(journal, History(lambda: 0), model, 0, nested=True))


def _built(journal: Journal, model: PersistenceModel) -> Iterator[CrashPoint]:
    journals = Journals(History(lambda: 0), Limits(), lambda _key, _depth: False)
    return (each.crashes[0] for each in journals.crashes(journal, model))


def _searched(journal: Journal, model: PersistenceModel) -> Iterator[CrashPoint]:
    return (each.crash for each in search(journal, History(lambda: 0), model).found)


@pytest.mark.parametrize("points", [_lazy, _built, _searched])
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_kill_cuts_a_direct_write_where_the_model_says_so(
    model: PersistenceModel, points: Points
) -> None:
    disk = Disk(_START)
    calls = Calls(Process(disk))
    calls.write_direct("f", _NEW)
    calls.write("f", _OLD)
    during = [each for each in points(disk.journal, model) if each.phase is Phase.DURING]
    kept = {operation: [each.kept for each in during if each.operation == operation]
            for operation in (1, 2)}  # fmt: skip
    assert kept == {1: [4096, 8192] if model.name in TORN_ON else [], 2: [4096, 8192]}
