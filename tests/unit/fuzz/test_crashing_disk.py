"""A crash ends its block, in asyncio too; mistakes in the use of ``CrashingDisk`` are named.

Such a mistake would hide that nothing is tested.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from powercut.crashing_disk import CrashingDisk
from sim.choices import PlainChoices, SeededChoices
from sim.disk.calls.process import Process
from sim.errors import HarnessError, PowerOff


def test_block_that_uses_an_older_process_is_a_mistake() -> None:
    disk = CrashingDisk()
    process = disk.process
    with disk.crash(PlainChoices()):
        process.mkdir("/first")
    sentence = "a process that an earlier crash has ended; start the system again after each crash"
    with pytest.raises(HarnessError, match=sentence), disk.crash(PlainChoices()):
        process.mkdir("/second")
    disk.process.mkdir("/third")
    with pytest.raises(PowerOff):
        process.mkdir("/fourth")


def test_block_that_goes_on_after_its_own_crash_is_crashed() -> None:
    disk = CrashingDisk()
    for seed in range(20):
        with disk.crash(SeededChoices(seed)):
            for number in range(20):
                try:
                    disk.process.mkdir(f"/{seed}-{number}")
                finally:
                    disk.process.mkdir(f"/{seed}-{number}-finally")
    assert len(disk.crashes) == 20


async def _make_directories(process: Process, *, ends: type[BaseException] | None = None) -> None:
    async def make(name: str) -> None:
        await asyncio.sleep(0)
        process.mkdir(name)
        if ends is not None:
            raise ends

    async with asyncio.TaskGroup() as group:
        for name in ("/a", "/b", "/c"):
            group.create_task(make(name))


def test_a_crash_inside_a_task_group_ends_the_block() -> None:
    for seed in range(20):
        disk = CrashingDisk()
        with disk.crash(SeededChoices(seed)):
            asyncio.run(_make_directories(disk.process))
        assert len(disk.crashes) == 1
        assert set(disk.process.listdir("/")) <= {"a", "b", "c"}


def test_an_older_process_in_a_task_group_is_a_mistake() -> None:
    disk = CrashingDisk()
    process = disk.process
    with disk.crash(PlainChoices()):
        process.mkdir("/first")
    sentence = "a process that an earlier crash has ended"
    with pytest.raises(HarnessError, match=sentence), disk.crash(PlainChoices()):
        asyncio.run(_make_directories(process))


@pytest.mark.parametrize("seed", range(3))
def test_a_group_with_an_exception_that_ends_the_program_is_raised(seed: int) -> None:
    class EndOfTest(BaseException):
        pass

    disk = CrashingDisk()
    with pytest.raises(BaseExceptionGroup), disk.crash(SeededChoices(seed)):
        asyncio.run(_make_directories(disk.process, ends=EndOfTest))


def test_choices_of_another_type_are_a_mistake() -> None:
    data: Any = "data"
    with (
        pytest.raises(HarnessError, match=r"such as HypothesisChoices\(data\), and not 'data'"),
        CrashingDisk().crash(data),
    ):
        pass
