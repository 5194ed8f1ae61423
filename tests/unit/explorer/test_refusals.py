"""Workloads that are refused: each with one sentence, which names the line of the program."""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.errors import EscapedSimulation, HarnessError
from sim.loop.sandbox import SANDBOX

SOON = Limits(timeout=3)
SPECIAL_FILE = (
    r" is not modelled by the simulated disk, at .*test_refusals.py:\d+ in .*; powercut try has no "
    r"special files either, so make it outside of the disk$"
)


def starts_a_child(ack: History) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def imports_a_module_with_a_connection(_ack: History) -> None:
    sys.modules.pop("tests.unit.explorer.connecting_module", None)
    import_module("tests.unit.explorer.connecting_module")


def opens_a_connection(ack: History) -> None:
    socket.create_connection(("127.0.0.1", 9))


def waits_for_ever(ack: History) -> None:
    threading.Event().wait()


def loops_for_ever(ack: History) -> None:
    while True:
        pass


def asserts(ack: History) -> None:
    raise AssertionError


def fails(ack: History) -> None:
    Path("missing").read_bytes()


def leaves(ack: History) -> None:
    os._exit(3)


def makes_a_fifo(ack: History) -> None:
    os.mkfifo("fifo")


def makes_a_device(ack: History) -> None:
    os.mknod("null", mode=0o600 | stat.S_IFCHR, device=os.makedev(1, 3))


def makes_a_file_by_mknod(ack: History) -> None:
    os.mknod("file", 0o600 | stat.S_IFREG)


def acknowledges_a_function(ack: History) -> None:
    Path("f").touch()
    ack(lambda: None)


def acknowledges_a_file_elsewhere(ack: History) -> None:
    Path("f").touch()
    ack({"f": b"", "../f": b""})


def writes_elsewhere(ack: History) -> None:
    with suppress(Exception):
        Path("/var/tmp/powercut-escaped").touch()


def writes_to_shared_memory(ack: History) -> None:
    Path("/dev/null").write_bytes(b"x")
    Path("/dev/shm/powercut-escaped").write_bytes(b"x")


def opens_a_relative_path_in_c(_ack: History) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.open(b"written-by-c", os.O_CREAT | os.O_WRONLY, 0o600) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def uses_a_descriptor_in_c(_ack: History) -> None:
    with open("f", "wb") as file:
        if ctypes.CDLL(None, use_errno=True).write(file.fileno(), b"x", 1) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def fails_in_c_with_an_error_of_its_own(_ack: History) -> None:
    raise ValueError("IO Error: could not\nopen the database")


def takes_nothing() -> None:
    """No workload."""


def takes_three(_process: Process, _ack: History, _more: object) -> None:
    """No workload."""


async def awaits(_ack: History) -> None:
    """No workload."""


def yields(_ack: History) -> Iterator[None]:
    yield


async def awaits_and_yields(_ack: History) -> AsyncIterator[None]:
    yield


def works(ack: History) -> None:
    Path("f").touch()
    ack({"f": b""})


async def awaits_a_check(_known: Known) -> None:
    raise AssertionError("never reached")


def writes(process: Process, ack: History) -> None:
    process.mkdir("/d")
    ack("d")


def answers_alone(_known: Known) -> bool:
    return False


def answers(process: Process, known: Known) -> bool:
    return not known.acknowledged or bool(process.listdir("/"))


def answers_second(_result: None, _known: Known) -> Any:
    return False


answers_in_two_phases = TwoPhases(lambda _process: None, answers_second)


async def awaited(known: Known) -> None:
    raise AssertionError(known)


def awaits_nothing(_process: Process, known: Known) -> object:
    return awaited(known)


def yields_in_a_check(_process: Process, _known: Known) -> Iterator[None]:
    yield


@pytest.mark.parametrize("check", [awaits_a_check, yields_in_a_check])
def test_a_check_of_which_a_call_does_nothing_is_refused(check: Any) -> None:
    with pytest.raises(HarnessError, match=f"{check.__name__} is a .* function, and a call of it"):
        explore(works, check, limits=SOON)


@pytest.mark.parametrize(
    ("workload", "check", "answer"),
    [
        (works, answers_alone, "False"),
        (writes, answers, "True"),
        (writes, awaits_nothing, "<coroutine object awaited"),
        (writes, answers_in_two_phases, "False"),
        (works, answers_in_two_phases, "False"),
    ],
)
def test_a_check_that_returns_its_verdict_is_refused(
    workload: Any, check: Any, answer: str
) -> None:
    sentence = f"the check returned {answer}.*, which nothing reads; raise an exception"
    with pytest.raises(HarnessError, match=sentence):
        explore(workload, check, limits=SOON)


@pytest.mark.parametrize("root", ["", "disk", "/", "/disk/", "/a/../b"])
def test_a_root_that_is_not_an_absolute_path_is_refused(root: str) -> None:
    with pytest.raises(HarnessError, match=f"root='{root}' must be an absolute path such as /disk"):
        explore(works, root=root)


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        (opens_a_relative_path_in_c, r"No such file .*C library opened the file.*powercut try"),
        (uses_a_descriptor_in_c, r"Bad file descriptor.*used its descriptor.*powercut try"),
        (
            fails_in_c_with_an_error_of_its_own,
            "ValueError: IO Error: could not open the database, at .*C library opened the file",
        ),
        (
            takes_nothing,
            r"takes_nothing has 0 .* take ack, or process and ack; see .*\.py:\d+, takes_nothing$",
        ),
        (takes_three, r"takes_three has 3 required parameters.*refusals.py:\d+, takes_three$"),
        (
            awaits,
            r"awaits is a coroutine function, .* calls asyncio.run\(...\); see .*:\d+, awaits$",
        ),
        (yields, r"yields is a generator function, .* without yield.*:\d+, yields$"),
        (awaits_and_yields, "awaits_and_yields is a generator function, .* without yield"),
        (
            starts_a_child,
            r"another process .*at .*test_refusals.py:\d+ in .*powercut try",
        ),
        (
            imports_a_module_with_a_connection,
            r"socket.bind uses the network, at .*connecting_module.py:\d+ .*import it at the top",
        ),
        (opens_a_connection, r"uses the network, at .*test_refusals.py:\d+"),
        (
            waits_for_ever,
            r"within 3 s; it is at .*test_refusals.py:\d+ in waits_for_ever",
        ),
        (
            loops_for_ever,
            r"within 3 s; it is at .*test_refusals.py:\d+ in loops_for_ever",
        ),
        (fails, r"failed before any crash: FileNotFoundError: .*at .*:\d+ in fails"),
        (asserts, r"failed before any crash: AssertionError, at .*:\d+ in asserts"),
        (leaves, "ended its process by itself, with exit status 3"),
        (makes_a_fifo, f"mkfifo{SPECIAL_FILE}"),
        (makes_a_device, f"mknod{SPECIAL_FILE}"),
        (makes_a_file_by_mknod, r"mknod is not modelled .*:\d+ .*; run .* with powercut try$"),
        (acknowledges_a_function, "the value cannot be copied"),
        (
            acknowledges_a_file_elsewhere,
            "^the acknowledged path /f is outside of the simulated disk, which is /disk; ",
        ),
        (
            writes_elsewhere,
            r"writes to the real disk, at .*test_refusals.py:\d+ .*below /disk",
        ),
        (
            writes_to_shared_memory,
            r"open\('/dev/shm/powercut-escaped'.* writes to the real disk, at .*below /disk",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_mistake_is_one_sentence_with_its_line(workload: object, sentence: str) -> None:
    assert callable(workload)
    with pytest.raises(HarnessError, match=sentence):
        explore(workload, limits=SOON)
    assert not Path("/var/tmp/powercut-escaped").exists()
    assert not Path("/dev/shm/powercut-escaped").exists()
    assert not Path("written-by-c").exists()


def makes_a_directory(process: Process, ack: History) -> None:
    process.mkdir("/d")
    ack(1)


def leaves_after_it(process: Process, ack: History) -> None:
    makes_a_directory(process, ack)
    os._exit(3)


def leaves_in_the_check(_process: Process, known: Known) -> None:
    if known.acknowledged:
        os._exit(3)


def leaves_in_the_second_phase(_result: None, known: Known) -> None:
    if known.acknowledged:
        os._exit(3)


@pytest.mark.parametrize("engine", [Engine.BRUTE, Engine.LAZY])
@pytest.mark.parametrize(
    ("workload", "check", "function"),
    [
        (leaves_after_it, leaves_in_the_check, "leaves_after_it"),
        (makes_a_directory, leaves_in_the_check, "leaves_in_the_check"),
        (
            makes_a_directory,
            TwoPhases(lambda _process: None, leaves_in_the_second_phase),
            "leaves_in_the_second_phase",
        ),
    ],
)
def test_an_exit_in_this_process_is_refused_with_its_line(
    workload: Any, check: Any, function: str, engine: Engine
) -> None:
    sentence = rf"^os\._exit was called, at .*test_refusals\.py:\d+ in {function}; it would end "
    with pytest.raises(HarnessError, match=sentence):
        explore(workload, check, limits=Limits(engine=engine))
    with pytest.raises(EscapedSimulation, match=r"^os\._exit was called inside a"), SANDBOX:
        os._exit(3)
