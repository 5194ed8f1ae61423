"""Crashes of a recovery in the lazy engine."""

from __future__ import annotations

import os

import pytest

from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer.explore import explore
from powercut.explorer.lazy import lazy_explorer
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.undecided.progress import UNLIMITED

NESTED = Limits(nested=1, engine=Engine.LAZY)


def _nothing(process: Process, ack: History) -> None:
    process.mkdir("/d")
    process.sync()
    ack("d")


def _creates(process: Process, _known: Known) -> None:
    names = process.listdir("/")
    if "a" not in names:
        process.mkdir("/a")
    elif "b" not in names:
        process.mkdir("/b")
        assert process.stat("/a").st_ino != process.stat("/b").st_ino


def test_an_inode_of_a_recovery_has_a_number_of_its_own() -> None:
    found = explore(_nothing, _creates, "ext4", NESTED)
    assert (found.is_lazy, found.safe) == (True, True)


def _compares_numbers(process: Process, _known: Known) -> None:
    with process.scandir("/") as entries:
        for entry in entries:
            assert entry.inode() == process.stat(entry.path).st_ino


def _writes_often(process: Process, _known: Known) -> None:
    descriptor = process.open("/log", os.O_CREAT | os.O_RDWR | os.O_APPEND)
    for number in range(1200):
        process.write(descriptor, b"%04d" % number)
    assert process.pread(descriptor, 9000, 0).endswith(b"1198" + b"1199")


def test_a_recovery_may_write_to_a_file_a_thousand_times() -> None:
    found = explore(_makes_and_removes, _writes_often, "ext4", Limits(engine=Engine.LAZY))
    assert (found.is_lazy, found.safe) == (True, True)


def _makes_and_removes(process: Process, ack: History) -> None:
    for path in ("/a", "/b"):
        process.mkdir(path)
    process.rmdir("/a")
    process.sync()
    ack("b")
    process.mkdir("/c")


def test_an_entry_of_a_directory_has_the_number_of_its_inode() -> None:
    found = explore(_makes_and_removes, _compares_numbers, "ext4", Limits(engine=Engine.LAZY))
    assert (found.is_lazy, found.safe) == (True, True)


def _writes(process: Process, _known: Known) -> None:
    if "f" in process.listdir("/"):
        descriptor = process.open("/f", os.O_RDONLY)
        found = process.read(descriptor, 9)
        if found.startswith(b"a") and found != b"abc":
            raise Violation("torn")
    else:
        process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"abc")


def test_a_recovery_is_torn_no_more_often_than_the_workload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 0, 1: 0, 0: 1000})
    found = explore(_nothing, _writes, "posix", NESTED)
    assert (found.how, found.safe) == ("exhaustive, no torn sector", True)


def _writes_pages(process: Process, _known: Known) -> None:
    if "f" not in process.listdir("/"):
        process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"x" * 8192)
    elif process.stat("/f").st_size == 4096:
        raise Violation("half")


def test_a_kill_interrupts_a_write_of_a_recovery() -> None:
    found = explore(_nothing, _writes_pages, "scc", NESTED)
    assert (found.is_lazy, found.safe) == (True, False)
