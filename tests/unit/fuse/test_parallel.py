"""Work in processes: one that is killed, and one that makes a mistake."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from powercut.explorer.ticker import Stopped
from powercut.fuse.parallel import in_processes
from sim.errors import HarnessError


def killed_after_one(number: int) -> Iterator[int]:
    yield number
    if number:
        os.kill(os.getpid(), signal.SIGKILL)


def killed_at_once(number: int) -> Iterator[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield number


def nothing() -> None:
    pass


def test_a_process_that_is_killed_leaves_no_verdict() -> None:
    with pytest.raises(HarnessError, match=r"^a process of powercut was killed before its work"):
        list(in_processes(2, killed_after_one, nothing))


def test_processes_that_an_interrupt_kills_are_the_end_of_the_work() -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        list(in_processes(1, killed_at_once, stop))


def test_all_results_come() -> None:
    assert sorted(in_processes(2, lambda number: range(number, 6, 2), nothing)) == list(range(6))


def test_a_mistake_is_its_own_sentence() -> None:
    def mistaken(_number: int) -> Iterator[int]:
        raise HarnessError("a mistake")

    with pytest.raises(HarnessError, match=r"^a mistake$"):
        list(in_processes(1, mistaken, nothing))


def test_a_process_that_is_ended_behind_its_work_does_not_go_on_as_a_copy_of_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    this, leave, calls = os.getpid(), os._exit, list[int]()

    def ended(status: int) -> None:
        calls.append(status)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        leave(status)

    monkeypatch.setattr(os, "_exit", ended)
    try:
        assert list(in_processes(1, range, nothing)) == []
    finally:
        if os.getpid() != this:
            (tmp_path / "copy").touch()
            leave(0)
    assert not (tmp_path / "copy").exists()


def test_an_interrupt_while_processes_begin_ends_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, fork = list[int](), os.fork

    def interrupted() -> int:
        process = fork()
        if process:
            begun.append(process)
            if len(begun) == 2:
                # To this thread: `powercut try` has no other one.
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        return process

    def endless(_: int) -> Iterator[int]:
        while True:
            signal.pause()
            yield 0

    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(in_processes(3, endless, nothing))
    for process in begun:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)
