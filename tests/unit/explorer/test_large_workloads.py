"""A workload of many files or of large writes has a verdict soon, which says that it is sampled."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from oracles.history import History
from powercut.explorer import journals
from powercut.explorer.crash_state import image_after, lost_pieces, unsynced_along
from powercut.explorer.explore import explore
from powercut.explorer.lazy import lazy_explorer
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.micro_operation import GrowSize, WriteBlock
from sim.disk.disk import Disk


@pytest.fixture(autouse=True)
def no_garbage() -> Iterator[None]:
    """Hundreds of megabytes of garbage would slow down each fork of the tests that follow."""
    yield
    gc.collect()


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


def test_large_writes_are_decided_without_their_states() -> None:
    """Whole writes only, so the verdict is no exhaustive one."""
    found = explore(large, lambda _process, _known: None, "posix", Limits(engine=Engine.LAZY))
    assert found.decided
    assert (found.how, found.exhaustive) == ("sampled", False)


@pytest.mark.parametrize("engine", [Engine.BRUTE, Engine.LAZY])
def test_a_lost_write_of_a_large_file_is_named_as_a_whole(engine: Engine) -> None:
    """The pieces of a failure are those of the model that has found it."""

    pieces = [bytes([number]) * (1 << 20) for number in range(1, 5)]

    def unsynced(process: Process, ack: History) -> None:
        descriptor = process.open("/new", os.O_CREAT | os.O_WRONLY)
        for piece in pieces:
            process.write(descriptor, piece)
        process.rename("/new", "/f")
        process.fsync(process.open("/", os.O_RDONLY))
        ack({"/f": b"".join(pieces)})

    found = explore(unsynced, model="ext4", limits=Limits(engine=engine))
    assert not found.safe
    journal, done = found.workload.journal, found.operations
    failure = next(each for each in found.failures if each.crashes[0].operation == done)
    ((_, micros),) = unsynced_along(journal, found.model, {done})
    lost = lost_pieces(micros, failure.crashes[0])
    assert {len(each.data) for each in lost if isinstance(each, WriteBlock)} <= {1 << 20}
    assert all(each.size % (1 << 20) == 0 for each in lost if isinstance(each, GrowSize))
    assert {type(each) for each in lost} <= {WriteBlock, GrowSize}
    image = image_after(journal, found.model, failure.crashes, lambda _disk: None)
    known = found.workload.history.known(failure.entries)
    again = found.checker.violation(Disk(image, found.model), known)
    assert str(again) == str(failure.violation)


def test_crash_points_of_many_files_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "MOST_STEPS", 1000)
    found = explore(many, model="ext4", limits=Limits(states_per_point=64, samples=8))
    assert not found.safe
    assert not found.exhaustive
    assert found.states < 20_000
    last = max(failure.crashes[0].operation for failure in found.failures)
    assert last == found.operations


def renames(process: Process, ack: History) -> None:
    for number in range(40):
        descriptor = process.open("/new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        process.write(descriptor, b"x")
        process.close(descriptor)
        process.rename("/new", f"/{number}")
    ack({"/0": b"x"})


def test_a_model_without_reordering_is_explored_whole() -> None:
    found = explore(renames, lambda _process, _known: None, "scc", Limits(engine=Engine.BRUTE))
    assert found.exhaustive
    assert found.built <= 3 * found.operations


def test_many_unsynced_renames_are_decided_without_their_states() -> None:
    found = explore(renames, lambda _process, _known: None, "posix", Limits(engine=Engine.LAZY))
    assert found.how == "exhaustive"
    assert found.decided > 1 << 40


def test_too_many_unsynced_pieces_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_INDEXED", 1000)
    monkeypatch.setattr(journals, "MOST_STEPS", 1000)
    limits = Limits(states_per_point=16, samples=4)
    found = explore(renames, lambda _process, _known: None, "posix", limits)
    assert (found.how, found.decided) == ("sampled", 0)
