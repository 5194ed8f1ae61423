"""Recoveries that are cancelled: the lock of the root is free when all of their work has ended."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import pytest

from system.ports import Workers
from system.recovery.open_logs import SESSIONS_A_CALL
from system.runtime import Runtime
from system.together import together
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, log_of

T = TypeVar("T")


class SlowWorkers:
    """Two calls at the same time wait at their end, also if they are cancelled.

    ``waiting`` has an event for each, which lets it end. ``both_wait`` is set when there are two.
    """

    def __init__(self, workers: Workers) -> None:
        self.waiting: list[asyncio.Event] = []
        self.both_wait = asyncio.Event()
        self._workers = workers
        self._under_way = 0

    async def run(self, call: Callable[[], T]) -> T:
        self._under_way += 1
        result = await self._workers.run(call)
        is_cancelled = False
        if self._under_way > 1:
            released = asyncio.Event()
            self.waiting.append(released)
            if len(self.waiting) > 1:
                self.both_wait.set()
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    is_cancelled = True
        self._under_way -= 1
        if is_cancelled:
            raise asyncio.CancelledError
        return result


def team(size: int) -> Room:
    """Return a root with so many agents, whose runtime was killed."""
    room = Room()
    room.open()
    for number in range(size):
        room.say(room.create(f"A{number}"), "hello")
    room.kill()
    return room


def test_a_cancelled_recovery_holds_the_lock_until_no_thread_writes_to_a_log() -> None:
    room = team(2 * SESSIONS_A_CALL)
    slow = SlowWorkers(room.host.workers)
    host = replace(room.host, workers=slow)

    async def cancelled() -> None:
        recovery = asyncio.create_task(Runtime.recover(host, room.providers))
        await slow.both_wait.wait()
        recovery.cancel()
        for released in slow.waiting:
            for _ in range(50):
                await asyncio.sleep(0)
            assert not recovery.done()
            released.set()
        with pytest.raises(asyncio.CancelledError):
            await recovery

    room.run(cancelled())
    room.open()


def test_a_recovery_can_be_cancelled_at_any_step() -> None:
    has_ended = False
    steps = 0
    while not has_ended:
        room = team(SESSIONS_A_CALL + 1)
        has_ended = room.run(_cancel_recovery(room, steps))
        room.reopen() if has_ended else room.open()
        room.check_no_failures()
        assert len(room.runtime.view().agents) == SESSIONS_A_CALL + 1, steps
        steps += 1
    assert steps > 20


async def _cancel_recovery(room: Room, steps: int) -> bool:
    """Cancel a recovery after so many steps; return whether it has ended before."""
    recovery = asyncio.create_task(Runtime.recover(room.host, room.providers))
    for _ in range(steps):
        await asyncio.sleep(0)
    recovery.cancel()
    with suppress(asyncio.CancelledError):
        await recovery
        return True
    return False


def test_a_recovery_that_is_cancelled_twice_frees_the_lock() -> None:
    has_ended, were_cancelled_twice, steps = False, 0, 0
    while not has_ended:
        room = Room()
        room.open()
        ada = room.create("Ada")
        room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
        log = log_of(room.session(room.named("Bob").agent_id))
        room.files.fail("append", log, errno.ENOSPC, sticky=True)
        room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
        room.kill()
        # The recovery has a task that writes the message later.
        room.files.fail("append", log, errno.ENOSPC, sticky=True)
        has_ended, is_second = room.run(_cancel_twice(room, steps))
        were_cancelled_twice += is_second
        room.files.faults.clear()
        room.reopen() if has_ended else room.open()
        room.check_no_failures()
        steps += 1
    assert were_cancelled_twice > 5


async def _cancel_twice(room: Room, steps: int) -> tuple[bool, bool]:
    """Cancel a recovery after so many steps, and again in the next one.

    Returns whether it had ended before the first time, and whether it was cancelled twice.
    """
    recovery = asyncio.create_task(Runtime.recover(room.host, room.providers))
    for _ in range(steps):
        await asyncio.sleep(0)
    recovery.cancel()
    await asyncio.sleep(0)
    is_second = recovery.cancel()
    with suppress(asyncio.CancelledError):
        await recovery
        return True, False
    return False, is_second


def test_works_end_together_although_one_fails() -> None:
    async def work() -> None:
        steps = list[str]()

        async def fail() -> None:
            raise OSError("refused")

        async def go_on() -> None:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            steps.append("ended")

        with pytest.raises(OSError, match="refused"):
            await together([fail(), go_on()])
        assert steps == ["ended"]

    asyncio.run(work())
