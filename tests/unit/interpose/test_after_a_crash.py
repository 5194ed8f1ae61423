"""A lifetime meets nothing that the one before it left in memory; other systems are refused."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powercut.crashing_disk import CrashingDisk
from powercut.fuzz.drivers.hypothesis_choices import HypothesisChoices
from powercut.interpose import installation
from powercut.interpose.interposed import interposed
from powercut.interpose.router import ROUTER
from powercut.interpose.sqlite_connect import connect
from sim.choices import SeededChoices
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import HarnessError, PowerOff, UnsupportedOperation


def test_a_thread_of_an_ended_process_reaches_no_later_disk() -> None:
    may_go, met = threading.Event(), []

    def late() -> None:
        may_go.wait(10)
        try:
            Path("late").touch()
        except PowerOff as error:
            met.append(error)

    first = Process(Disk())
    with interposed(first):
        thread = threading.Thread(target=late)
        thread.start()
        first.poison()
    with interposed(Process(Disk())) as second:
        may_go.set()
        thread.join()
        Path("own").touch()
    assert sorted(second.disk.files()) == ["/disk/own"]
    assert len(met) == 1


def test_a_finalizer_of_an_ended_process_removes_nothing() -> None:
    with interposed(Process(Disk())) as first:
        folder = tempfile.TemporaryDirectory()
        name = folder.name
        first.poison()
    with interposed(Process(Disk())):
        os.mkdir(name)
        del folder
        gc.collect()
        assert os.path.isdir(name)


def test_temporary_names_repeat_from_run_to_run() -> None:
    names = []
    for _ in range(2):
        with interposed(Process(Disk())), tempfile.NamedTemporaryFile() as file:
            names.append(file.name)
    assert names[0] == names[1]
    assert names[0].startswith("/disk/")
    assert not tempfile.gettempdir().startswith("/disk")


def test_the_environment_comes_back() -> None:
    before = dict(os.environ), sys.path[:], sys.dont_write_bytecode
    with interposed(Process(Disk())):
        assert os.environ["HOME"] == os.environ["TMPDIR"] == "/disk"
        assert Path("~/x").expanduser() == Path("/disk/x")
    assert (dict(os.environ), sys.path, sys.dont_write_bytecode) == before


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_state_machine_crashes_inside_any_call(data: st.DataObject) -> None:
    disk = CrashingDisk(model="ext4")
    with interposed(disk.process):
        Path("value").write_text("old", "utf-8")
        os.sync()
    with disk.crash(HypothesisChoices(data)), interposed(disk.process):
        Path("value.tmp").write_text("new", "utf-8")
        with open("value.tmp", "rb") as file:
            os.fsync(file.fileno())
        os.replace("value.tmp", "value")
    with interposed(disk.process):
        assert Path("value").read_text("utf-8") in {"old", "new"}


def test_a_crash_ends_the_block_of_the_process() -> None:
    disk = CrashingDisk(model="scc", most_operations=3)
    first = disk.process
    with disk.crash(SeededChoices(3)), interposed(first):
        for number in range(9):
            Path(str(number)).touch()
    assert first.disk.off
    assert disk.process is not first
    with interposed(disk.process):
        assert len(os.listdir()) < 9


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("platform", "darwin", "it runs on Linux, and this is darwin"),
        ("version_info", (3, 16, 0), "it was tried with CPython 3.11 to 3.15, .* cpython 3.16;"),
    ],
)
def test_other_systems_and_interpreters_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, text: str
) -> None:
    monkeypatch.setattr(installation, "_installed", [])
    with monkeypatch.context() as changed:
        changed.setattr(sys, name, value)
        with pytest.raises(HarnessError, match=text):
            installation.install()


def test_sqlite_that_is_linked_statically_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("powercut.interpose.sqlite_connect._library", None)
    with pytest.raises(UnsupportedOperation, match="use apsw"), interposed(Process(Disk())):
        connect(ROUTER, "app.db")
    with interposed(Process(Disk())):
        connect(ROUTER, ":memory:").close()
