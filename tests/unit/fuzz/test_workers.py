"""Jobs on several processes: every result comes back, and no process outlives its parent."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import _ExecutorManagerThread
from errno import EBADF
from multiprocessing import active_children
from multiprocessing.connection import wait
from types import FrameType

import pytest

from powercut.fuzz.campaign.workers import WorkerDied, cores, work
from tests.meta.source_tree import run_python


def test_every_job_is_done_once() -> None:
    assert sorted(work(abs, range(-5, 0), 1)) == [1, 2, 3, 4, 5]
    assert sorted(work(abs, range(-20, 0), 2)) == list(range(1, 21))


def test_jobs_are_taken_when_they_are_needed() -> None:
    taken = []

    def jobs() -> Iterator[int]:
        for job in range(1000):
            taken.append(job)
            yield job

    results = work(abs, jobs(), 2)
    next(results)
    results.close()
    assert len(taken) < 20


@pytest.mark.parametrize("processes", [1, 2])
def test_an_exception_of_a_job_is_raised_here(processes: int) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(work(int, ["1", "one", "2"], processes))


def assert_all_end() -> None:
    """Wait for the end of all processes; the pool's own thread waits for them too."""
    deadline = time.monotonic() + 30
    while (children := active_children()) and time.monotonic() < deadline:
        wait([child.sentinel for child in children], timeout=30)
    assert active_children() == []


def test_processes_end_at_once_when_a_job_has_raised() -> None:
    with pytest.raises(ValueError, match="must be non-negative"):
        list(work(time.sleep, [600, -1], 2))
    assert_all_end()


def test_exception_has_the_description_of_what_each_process_executes() -> None:
    with pytest.raises(ValueError, match="must be non-negative") as raised:
        list(work(time.sleep, [600, -1], 2, repr))
    notes = raised.value.__notes__
    assert len(notes) == 2
    assert all(note.startswith("<frame ") for note in notes)


def terminated_again(_: FrameType | None) -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    return "ended"


def test_process_that_is_terminated_twice_is_described_once() -> None:
    # The pool terminates its processes too when it finds that one has ended.
    with pytest.raises(ValueError, match="must be non-negative") as raised:
        list(work(time.sleep, [600, -1], 2, terminated_again))
    assert raised.value.__notes__ == ["ended", "ended"]


def test_process_that_executes_no_python_is_killed() -> None:
    endless = "import itertools; sum(itertools.repeat(0))"
    with pytest.raises(ValueError, match="the end"):
        list(work(exec, [endless, "raise ValueError('the end')"], 2))
    assert_all_end()


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("job", "argument", "end"),
    [(kill, signal.SIGKILL, "SIGKILL"), (os._exit, 3, "exit code 3")],
    ids=["signal", "exit"],
)
def test_process_that_ends_before_its_job_is_named_with_the_reason(
    job: Callable[[int], None], argument: int, end: str
) -> None:
    sentence = rf"a worker process ended before its job was done \({end}\); it was killed, "
    with pytest.raises(WorkerDied, match=sentence):
        list(work(job, [argument, argument], 2))


def test_process_that_ends_before_it_has_a_job_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(*_: object) -> None:
        raise OSError(EBADF, "Bad file descriptor")

    monkeypatch.setattr(ProcessPoolExecutor, "submit", submit)
    with pytest.raises(WorkerDied, match="a worker process ended before its job was done; it was"):
        list(work(abs, [1], 2))


def test_no_thread_of_the_pool_is_left_when_a_job_has_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = _ExecutorManagerThread.run

    def run_longer(thread: _ExecutorManagerThread) -> None:
        run(thread)
        threading.Event().wait(0.2)

    monkeypatch.setattr(_ExecutorManagerThread, "run", run_longer)
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="must be non-negative"):
        list(work(time.sleep, [600, -1], 2))
    assert set(threading.enumerate()) <= before


def test_there_is_a_core() -> None:
    assert cores() >= 1


def test_processes_end_with_their_parent() -> None:
    # The parent is killed while a job of ten minutes is under way. The job holds the other
    # end of our pipes, so the answer comes in time only if its process has ended too.
    script = (
        "import os, signal, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "from powercut.fuzz.campaign.workers import _start_worker\n"
        "if __name__ == '__main__':\n"
        "    spawn = get_context('spawn')\n"
        "    arguments = (repr, spawn.Pipe()[1])\n"
        "    pool = ProcessPoolExecutor(1, spawn, _start_worker, arguments)\n"
        "    pool.submit(os.getpid).result()\n"
        "    pool.submit(time.sleep, 600)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert run_python("-c", script).returncode == -signal.SIGKILL
