"""The line of callers that wait for room: one is woken at a time, and keeps its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from system.agents.multiplexer import WaitingLine


class _Rooms:
    """``free`` rooms; ``taken`` are the callers that got one, ``checks`` are their questions."""

    def __init__(self) -> None:
        self.line = WaitingLine()
        self.free = self.checks = 0
        self.taken: list[str] = []

    async def take(self, name: str) -> None:
        place = object()
        try:
            while not self._found():
                await self.line.wait(place)
            self.taken.append(name)
        finally:
            self.line.leave(place)

    def _found(self) -> bool:
        self.checks += 1
        self.free -= (found := self.free > 0)
        return found


def _in_line(names: str, act: Callable[[_Rooms, list[asyncio.Task[None]]], Awaitable[None]]) -> str:
    """Let callers wait in their order, then act; return those that got a room, in that order."""

    async def main() -> str:
        rooms = _Rooms()
        tasks = [asyncio.create_task(rooms.take(name)) for name in names]
        await _rounds()
        await act(rooms, tasks)
        await _rounds()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return "".join(rooms.taken)

    return asyncio.run(main())


async def _rounds() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_free_room_is_for_the_first_and_wakes_one_more_caller() -> None:
    async def act(rooms: _Rooms, _: list[asyncio.Task[None]]) -> None:
        rooms.checks, rooms.free = 0, 1
        rooms.line.wake()
        await _rounds()
        assert rooms.checks == 2

    assert _in_line("abcde", act) == "a"


def test_one_wake_up_is_enough_for_several_rooms() -> None:
    async def act(rooms: _Rooms, _: list[asyncio.Task[None]]) -> None:
        rooms.free = 3
        rooms.line.wake()

    assert _in_line("abcd", act) == "abc"


def test_a_caller_that_finds_no_room_keeps_its_place() -> None:
    async def act(rooms: _Rooms, _: list[asyncio.Task[None]]) -> None:
        for _again in range(2):
            rooms.line.wake()
            rooms.line.wake()
            await _rounds()
        rooms.free = 3
        rooms.line.wake()

    assert _in_line("abcd", act) == "abc"


def test_a_caller_that_was_woken_and_gives_up_is_followed_by_the_next_one() -> None:
    async def act(rooms: _Rooms, tasks: list[asyncio.Task[None]]) -> None:
        rooms.free = 1
        rooms.line.wake()
        tasks[0].cancel()

    assert _in_line("abc", act) == "b"


def test_a_caller_that_gives_up_is_not_woken() -> None:
    async def act(rooms: _Rooms, tasks: list[asyncio.Task[None]]) -> None:
        tasks[0].cancel()
        await _rounds()
        rooms.free = 1
        rooms.line.wake()

    assert _in_line("abc", act) == "b"
