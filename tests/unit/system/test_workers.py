"""The threads of a real host: how many there are, and how they end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from functools import partial

import pytest

from system.workers import THREADS, RealWorkers

_SECONDS = 60


def _threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "powercut-disk"]


def test_calls_one_after_the_other_share_a_thread() -> None:
    async def main() -> set[int]:
        workers = RealWorkers()
        return {await workers.run(threading.get_ident) for _ in range(2 * THREADS)}

    assert len(asyncio.run(main())) == 1


def test_concurrent_calls_have_a_thread_each_up_to_a_limit() -> None:
    all_run = threading.Barrier(THREADS)

    async def main() -> set[int]:
        workers = RealWorkers()

        def call() -> int:
            all_run.wait(_SECONDS)
            return threading.get_ident()

        return {*await asyncio.gather(*[workers.run(call) for _ in range(2 * THREADS)])}

    assert len(asyncio.run(main())) == THREADS


class ScarceThread(threading.Thread):
    """A thread of a system that has room for one more."""

    room = 1

    def start(self) -> None:
        if not ScarceThread.room:
            raise RuntimeError("can't start new thread")
        ScarceThread.room -= 1
        super().start()


def test_calls_wait_for_a_thread_if_the_system_refuses_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("system.workers.Thread", ScarceThread)

    async def main() -> set[int]:
        workers = RealWorkers()
        return {*await asyncio.gather(*[workers.run(threading.get_ident) for _ in range(5)])}

    assert len(asyncio.run(main())) == 1
    with pytest.raises(OSError, match="can't start new thread"):
        asyncio.run(RealWorkers().run(threading.get_ident))


def test_a_dropped_call_leaves_its_thread_to_others() -> None:
    async def main() -> None:
        workers, go_on = RealWorkers(), threading.Event()
        busy = [asyncio.create_task(workers.run(go_on.wait)) for _ in range(THREADS)]
        dropped = [asyncio.create_task(workers.run(int)) for _ in range(THREADS)]
        await asyncio.sleep(0)
        for task in dropped:
            task.cancel()
        await asyncio.wait(dropped)
        go_on.set()
        await asyncio.gather(*busy)
        all_run = threading.Barrier(THREADS)
        await asyncio.gather(*[workers.run(partial(all_run.wait, _SECONDS)) for _ in busy])

    asyncio.run(main())


def test_threads_end_with_their_workers() -> None:
    earlier = _threads()

    async def main() -> list[threading.Thread]:
        workers = RealWorkers()
        await asyncio.gather(*[workers.run(int) for _ in range(THREADS)])
        return [each for each in _threads() if each not in earlier]

    started = asyncio.run(main())
    assert started
    for thread in started:
        thread.join(_SECONDS)
        assert not thread.is_alive()


_EXIT = f"""
import asyncio, sys, threading
from system.workers import RealWorkers

def call():
    threading.main_thread().join()
    sys.stdout.write("written\\n")

workers, loop = RealWorkers(), asyncio.new_event_loop()
loop.run_until_complete(workers.run(int))
tasks = [loop.create_task(workers.run(call)) for _ in range({THREADS + 4})]
loop.call_soon(loop.stop)
loop.run_forever()
"""


def test_calls_that_were_handed_over_are_done_before_the_interpreter_exits() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EXIT], check=True, capture_output=True, text=True, timeout=_SECONDS
    )

    assert done.stdout == "written\n" * (THREADS + 4)


def test_a_thread_that_waits_for_calls_does_not_delay_the_exit() -> None:
    program = _EXIT.replace("def call", "def unused").replace("run(call)", "run(int)")

    subprocess.run([sys.executable, "-c", program], check=True, timeout=_SECONDS)
