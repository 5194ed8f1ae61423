"""Paths through descriptors: those of the disk are refused by name, all others are real."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import UnsupportedOperation


def _call(name: str, path: str) -> object:
    """Call a function of ``os`` that is looked up now: one from before the first block is real."""
    return getattr(os, name)(path)


CALLS: dict[str, Callable[[str], object]] = {
    "exists": os.path.exists,
    "io.open": open,
    "link": lambda path: os.link("f", path),
    "listdir": partial(_call, "listdir"),
    "lstat": partial(_call, "lstat"),
    "name": lambda path: os.stat(f"{path}/name"),
    "open": lambda path: os.open(path, os.O_RDONLY),
    "readlink": partial(_call, "readlink"),
    "realpath": os.path.realpath,
    "rename": lambda path: os.rename(path, "g"),
    "stat": partial(_call, "stat"),
    "stat of bytes": lambda path: os.stat(os.fsencode(path)),
    "unlink": partial(_call, "unlink"),
}
FOLDERS = ("/proc/self/fd", "/proc/thread-self/fd", f"/proc/{os.getpid()}/fd", "/dev/fd")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_path_of_a_descriptor_of_the_disk_is_refused(call: Callable[[str], object]) -> None:
    for folder in FOLDERS:
        block = interposed(Process(Disk()))
        remedy = r"/fd/\d+\S* is not modelled .* as in os\.stat\(\d+\)"
        with pytest.raises(UnsupportedOperation, match=remedy), block, suppress(Exception):
            call(f"{folder}/{os.open('f', os.O_CREAT)}")


def test_the_path_of_a_real_descriptor_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "real"
    path.write_bytes(b"abc")
    with interposed(Process(Disk())), path.open("rb") as file:
        for folder in FOLDERS:
            assert os.stat(f"{folder}/{file.fileno()}").st_size == 3
            assert os.readlink(f"{folder}/{file.fileno()}") == str(path)
