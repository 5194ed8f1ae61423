"""A check that is crashed as well is called once for equal images, over all explorations."""

from __future__ import annotations

import os

import pytest

from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer import recovery_results
from powercut.explorer.explore import judged
from powercut.explorer.journals import CrashImage
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.recovery_results import RecoveryResults
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX
from sim.disk.disk import Disk

NESTED = Limits(nested=1)
NOTHING = Known((), ())


def _replaces(process: Process, ack: History) -> None:
    for text in (b"1", b"2"):
        descriptor = process.open("/new", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, text)
        process.close(descriptor)
        process.rename("/new", "/f")
        process.sync()
        ack(text)


class _Recovery:
    """Requires a file, moves it away, and moves it back; counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, process: Process, known: Known) -> None:
        self.calls += 1
        if known.acknowledged:
            process.rename("/f", "/g")
            process.rename("/g", "/f")


def test_explorations_share_the_results_of_equal_images() -> None:
    recorded, recovery = record(_replaces, POSIX, Image.empty()), _Recovery()
    found = judged(recorded, recovery, MODELS.values(), NESTED)
    calls = 0
    for model in MODELS.values():
        once, twice = _Recovery(), _Recovery()
        alone = judged(recorded, once, [model], NESTED)[model.name]
        judged(recorded, twice, [model, model], NESTED)
        assert twice.calls == once.calls
        calls += once.calls
        together = found[model.name]
        assert str(alone) == str(together)
        assert [each.crashes for each in alone.failures] == [
            each.crashes for each in together.failures
        ]
    assert recovery.calls < calls // 2
    assert any(len(each.crashes) == 2 for each in found["scc"].failures)


def _results(calls: list[Image]) -> RecoveryResults:
    def check(disk: Disk, _known: Known) -> Violation | None:
        calls.append(disk.image)
        process = Process(disk)
        process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"data")
        return None

    return RecoveryResults(check)


def test_images_are_apart_if_a_recovery_gives_its_files_other_numbers() -> None:
    calls: list[Image] = []
    results, images = _results(calls), [Image.empty(), Image.empty()._replace(next_inode=9)]
    for image in images * 2:
        create, _ = results.of(CrashImage(image, (0, "empty"), (), 0), NOTHING, POSIX).operations
        assert create.inode == image.next_inode
    assert calls == images


def test_images_are_apart_if_their_keys_are() -> None:
    calls: list[Image] = []
    results, keys = _results(calls), [(0, "a"), (1, "a"), (0, "a", "unsynced"), (0, "b")]
    for key in keys * 2:
        results.of(CrashImage(Image.empty(), key, (), 0), NOTHING, POSIX)
    assert len(calls) == len(keys)


def test_few_bytes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery_results, "_MOST_BYTES", 11)
    calls: list[Image] = []
    results = _results(calls)
    for content in ("a", "b", "a", "c", "a"):
        results.of(CrashImage(Image.empty(), (0, content), (), 0), NOTHING, POSIX)
    assert len(calls) == 4
