"""The damage of a fault plan after the plan: other plans and lifetimes read misplaced bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pytest

from powercut.fuzz.action import ActionKind
from powercut.fuzz.disk_faults import DiskFaults
from powercut.fuzz.fault_families import FaultFamily
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import DiskTarget
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.world import World

BEFORE = b"a" * 1536
MISDIRECTED = BEFORE[:1024] + b"DATA" + BEFORE[1028:]


class Idle(DiskTarget):
    """A target without actions."""

    def actions(self) -> Sequence[ActionKind]:
        return ()

    def recover(self, host: Process) -> None:
        """Recover nothing."""


def test_a_target_gets_no_silent_damage_and_no_interrupted_calls_by_default() -> None:
    assert {*FaultFamily} - {*Idle().fault_families} == {
        FaultFamily.DELAYED_BARRIER_ERROR,
        FaultFamily.BIT_ROT,
        FaultFamily.MISDIRECTED_WRITE,
        FaultFamily.INTERRUPTED,
    }


class Bench:
    """A disk whose file ``/f`` has a misdirected write."""

    def __init__(self) -> None:
        target = Idle()
        self.world = World(target.make_host, PlainChoices())
        self.faults = DiskFaults(self.world, target, Tally())
        self.process = self.world.boot()
        self.write(BEFORE, 0)
        self.faults.switch_on("write * #1 misdirected:2")
        self.write(b"DATA", 600)

    def write(self, data: bytes, offset: int) -> None:
        descriptor = self.process.open("/f", os.O_CREAT | os.O_RDWR)
        self.process.pwrite(descriptor, data, offset)
        self.process.close(descriptor)

    def read(self) -> bytes:
        descriptor = self.process.open("/f", os.O_RDONLY)
        content = self.process.pread(descriptor, 4096, 0)
        self.process.close(descriptor)
        return content

    def lift(self) -> None:
        self.faults.lift()

    def change(self) -> None:
        self.faults.switch_on("fsync * EIO:ext4")

    def reboot(self) -> None:
        self.world.kill()
        self.process = self.world.boot()
        self.faults.install()


@pytest.mark.parametrize(
    "events",
    [
        (Bench.lift,),
        (Bench.change,),
        (Bench.reboot,),
        (Bench.lift, Bench.reboot),
        (Bench.change, Bench.lift, Bench.reboot, Bench.reboot),
        (Bench.lift, Bench.reboot, Bench.change, Bench.reboot),
    ],
    ids=lambda events: ", ".join(each.__name__ for each in events),
)
def test_misplaced_bytes_stay_until_the_program_writes_there(
    events: Sequence[Callable[[Bench], None]],
) -> None:
    bench = Bench()
    assert bench.read() == MISDIRECTED
    for event in events:
        event(bench)
    assert bench.read() == MISDIRECTED
    bench.write(b"data", 600)
    bench.write(b"aaaa", 1024)
    assert bench.read() == BEFORE[:600] + b"data" + BEFORE[604:]


def test_without_damage_a_lifetime_after_the_plan_has_no_interposer() -> None:
    bench = Bench()
    bench.lift()
    bench.write(BEFORE, 0)
    bench.reboot()  # the disk may have lost the write, which the boot finds out
    bench.reboot()
    assert bench.world.disk.interposer is None
