"""Mistakes in the use of ``CrashingDisk`` are named; they would hide that nothing is tested."""

from __future__ import annotations

from typing import Any

import pytest

from powercut.crashing_disk import CrashingDisk
from sim.choices import PlainChoices, SeededChoices
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


def test_choices_of_another_type_are_a_mistake() -> None:
    data: Any = "data"
    with (
        pytest.raises(HarnessError, match=r"such as HypothesisChoices\(data\), and not 'data'"),
        CrashingDisk().crash(data),
    ):
        pass
