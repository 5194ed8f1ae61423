"""The demo on a full disk: it names the agent that waits, and keeps waiting."""

from __future__ import annotations

import errno
from asyncio import CancelledError, create_task, timeout
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from system.demo.operator import run_demo
from system.host import RealClock, real_host, run
from system.ports import Host
from system.storage.framing import Framing
from tests.unit.system.demos import demo, log_of
from tests.unit.system.faulty_files import FaultyFiles

HASTE = 100


class HastyClock(RealClock):
    """A clock on which everything comes sooner; ``passed`` is called with the sleeps so far."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps = 0
        self.passed: Callable[[int], None] = lambda _sleeps: None

    async def sleep(self, delay_ns: int) -> None:
        self.sleeps += 1
        self.passed(self.sleeps)
        await super().sleep(delay_ns // HASTE)

    def timeout(self, delay_ns: int) -> AbstractAsyncContextManager[object]:
        return timeout(delay_ns / HASTE / 1e9)


class Room:
    """A root on which one job was done; from then on the files of its host can fail."""

    def __init__(self, root: Path) -> None:
        assert demo(root, "--jobs", "1").exit_code == 0
        host = real_host(str(root))
        self.files, self.clock = FaultyFiles(host.files), HastyClock()
        self.host: Host = replace(host, files=self.files, clock=self.clock)
        self.writers_log = log_of(root, "writer").as_posix()
        self.lines: list[str] = []

    def fill_the_disk(self) -> None:
        """Refuse every append of the writer but the first, the message that lets it take a turn."""
        self.files.fail("append", self.writers_log, errno.ENOSPC, nth=2, sticky=True)

    def waiting(self) -> list[str]:
        return [line for line in self.lines if line.startswith("waiting")]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_an_agent_that_waits_for_space_is_reported_once_and_continues_when_there_is_some(
    room: Room,
) -> None:
    room.fill_the_disk()

    def make_room(sleeps: int) -> None:
        if sleeps == 4:
            room.files.faults.clear()

    room.clock.passed = make_room

    undone = run(run_demo(room.host, 2, Framing.FRAMED, room.lines.append))

    assert undone == []
    assert room.waiting() == [
        (
            f"waiting writer: {room.writers_log}: no space left (No space left on device); "
            "make room and repeat the call"
        )
    ]
    assert room.lines[-2].endswith('{"job": 2}')


def test_another_reason_to_wait_is_reported_as_well(room: Room) -> None:
    room.fill_the_disk()

    def say(line: str) -> None:
        room.lines.append(line)
        if len(room.waiting()) == 1:
            room.files.faults.clear()
            room.files.fail("append", room.writers_log, errno.EDQUOT, sticky=True)
        if len(room.waiting()) == 2:
            room.files.faults.clear()

    assert run(run_demo(room.host, 2, Framing.FRAMED, say)) == []

    assert ["No space left" in room.waiting()[0], "quota" in room.waiting()[1]] == [True, True]


def test_a_demo_that_is_interrupted_while_it_waits_is_interrupted_whatever_closing_says(
    room: Room,
) -> None:
    room.fill_the_disk()

    async def main() -> None:
        def say(line: str) -> None:
            room.lines.append(line)
            if line.startswith("waiting"):
                room.files.fail("replace", "session.json", errno.ENOSPC, sticky=True)
                task.cancel()

        task = create_task(run_demo(room.host, 2, Framing.FRAMED, say))
        await task

    with pytest.raises(CancelledError):
        run(main())

    assert room.lines[-1].startswith("some files could not be written at the end")
