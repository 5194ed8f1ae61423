"""A workload of many files or of large writes has a verdict soon, which says that it is sampled."""

from __future__ import annotations

import os

import pytest

from oracles.history import History
from powercut.explorer import journals
from powercut.explorer.explore import explore
from sim.disk.calls.process import Process


def large(process: Process, ack: History) -> None:
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    ack.attempt({"/f": bytes(4 << 20)})
    process.write(descriptor, bytes(4 << 20))
    process.fsync(descriptor)
    ack({"/f": bytes(4 << 20)})


def many(process: Process, ack: History) -> None:
    for number in range(150):
        descriptor = process.open(f"/{number}", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"x")
        process.close(descriptor)
    ack({"/0": b"x"})


def test_a_large_write_is_lost_as_a_whole() -> None:
    found = explore(large, lambda _process, _known: None, "posix")
    assert not found.exhaustive
    assert found.states < 200


def test_crash_points_of_many_files_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MOST_PIECES", 1000)
    found = explore(many, model="ext4")
    assert not found.safe
    assert not found.exhaustive
    assert found.states < 20_000
    last = max(failure.crashes[0].operation for failure in found.failures)
    assert last == found.operations
