"""The fault injector: rules compose, count, are switched, and must have fired."""

from __future__ import annotations

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector, NeverFired
from sim.choices import PlainChoices
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import HarnessError, SimulatedCrash
from sim.loop.clock import EPOCH_NS, TICK_NS, SimulatedClock
from sim.world import World
from tests.unit.faults.faulty_disk import booted, faulty_disk

SECOND_NS = 1_000_000_000


def test_two_rules_at_one_call_compose() -> None:
    faulty = faulty_disk("read * short:4B; read * rot:0", {"/f": b"a" * 100})
    assert len(faulty.read("/f")) == 4
    assert faulty.faults.fired[0] == 1
    refused = faulty_disk("write * #1 short:4B; write * #1 EIO")
    with pytest.raises(OSError, match="Input/output"):
        refused.process.write(refused.opened("/f"), b"123456")
    assert refused.read("/f") == b""


def test_of_two_rules_that_strike_at_one_call_the_first_is_applied_first() -> None:
    faulty = faulty_disk("write * #1 EIO; write * #1 EINTR", {"/f": b""})
    descriptor = faulty.opened("/f")
    with pytest.raises(OSError, match="Input/output"):
        faulty.process.write(descriptor, b"x")
    with pytest.raises(InterruptedError):
        faulty.process.write(descriptor, b"x")


def test_every_rule_of_a_plan_boots_with_the_next_lifetime() -> None:
    plan = "write /g after 0B ENOSPC; write /f #1 misdirected:0; write /f after 10B ENOSPC"
    faulty = faulty_disk(plan)
    descriptor = faulty.opened("/f")
    faulty.process.write(descriptor, b"123456")
    faulty.process.write(descriptor, b"7890")
    count = len(faulty.disk.unsynced().micros)
    again = booted(faulty.faults, faulty.disk.power_cut(SurvivorSet.of_mask(0, count)))
    assert again.process.write(again.opened("/f"), b"1234567890") == 10


def test_a_rule_that_is_switched_off_counts_nothing() -> None:
    faulty = faulty_disk("read * #2 EIO", {"/f": b"x"})
    faulty.read("/f")
    faulty.faults.switch(0, on=False)
    faulty.read("/f")
    assert str(faulty.faults.plan) == "off read * #2 EIO"
    faulty.faults.switch(0, on=True)
    with pytest.raises(OSError, match="Input/output"):
        faulty.read("/f")


def test_lifting_switches_every_rule_off() -> None:
    faulty = faulty_disk("read * EIO; write * EIO", {"/f": b"x"})
    faulty.faults.lift()
    assert faulty.faults.plan == FaultPlan.parse("off read * EIO; off write * EIO")
    assert faulty.read("/f") == b"x"
    assert faulty.faults.fired == (0, 0)


def test_counts_continue_in_the_next_lifetime() -> None:
    faulty = faulty_disk("read * #2 EIO", {"/f": b"x"})
    faulty.read("/f")
    again = booted(faulty.faults, faulty.disk.snapshot())
    with pytest.raises(OSError, match="Input/output"):
        again.read("/f")


def test_a_planned_fault_that_never_fired_is_reported() -> None:
    faulty = faulty_disk("read * #1 EIO; read *.other #1 EIO", {"/f": b"x"})
    with pytest.raises(OSError, match="Input/output"):
        faulty.read("/f")
    with pytest.raises(NeverFired, match=r"^planned but never injected: read \*.other #1 EIO$"):
        faulty.faults.assert_fired()


def test_a_plan_whose_faults_all_fired_is_accepted() -> None:
    faulty = faulty_disk("read * #1 EIO", {"/f": b"x"})
    with pytest.raises(OSError, match="Input/output"):
        faulty.read("/f")
    faulty.faults.assert_fired()


def test_a_disk_takes_one_injector() -> None:
    disk = Disk()
    first = FaultInjector(FaultPlan())
    first.install(disk)
    with pytest.raises(
        HarnessError, match=r"has an interposer already.*; remove\(\) it if it is a"
    ):
        FaultInjector(FaultPlan()).install(disk)
    first.remove()
    FaultInjector(FaultPlan()).install(disk)


def test_a_crash_counter_comes_before_the_injectors() -> None:
    faulty = faulty_disk("write * #1 short:4B; open * above 0 EMFILE")
    faulty.faults.switch(1, on=False)
    descriptor = faulty.opened("/f")
    faulty.disk.interposer = CrashCounter(faulty.disk, 1, Phase.AFTER)
    with pytest.raises(SimulatedCrash):
        faulty.process.write(descriptor, b"123456")
    assert faulty.disk.snapshot().files() == {"/f": b"1234"}
    assert faulty.faults.fired == (1, 0)


def test_a_refused_operation_is_not_counted_as_one_that_happened() -> None:
    faulty = faulty_disk("write * #1 EIO", {"/f": b""})
    descriptor = faulty.opened("/f")
    faulty.disk.interposer = CrashCounter(faulty.disk, 1, Phase.AFTER)
    with pytest.raises(OSError, match="Input/output"):
        faulty.process.write(descriptor, b"x")
    with pytest.raises(SimulatedCrash):
        faulty.process.write(descriptor, b"x")


def test_the_clock_steps_back_at_its_reading_and_is_right_again_when_lifted() -> None:
    clock = SimulatedClock()
    faults = FaultInjector(FaultPlan.parse("clock * #3 back:90s"))
    faults.install(Disk(now_ns=clock.wall_ns), clock)
    readings = []
    for _ in range(5):
        clock.advance(SECOND_NS - TICK_NS)
        readings.append((clock.wall_ns() - EPOCH_NS) // SECOND_NS)
    assert readings == [1, 2, -87, -86, -85]
    assert faults.fired == (1,)
    faults.lift()
    assert (clock.wall_now_ns - EPOCH_NS) // SECOND_NS == 5


def test_a_clock_is_right_while_its_rule_is_switched_off() -> None:
    clock = SimulatedClock()
    faults = FaultInjector(FaultPlan.parse("clock * #1 back:90s"))
    faults.install(Disk(now_ns=clock.wall_ns), clock)
    clock.wall_ns()
    offsets = []
    for on in (False, True):
        faults.switch(0, on=on)
        offsets.append(clock.wall_now_ns - clock.now_ns - EPOCH_NS)
    assert offsets == [0, -90 * SECOND_NS]


def test_a_step_of_the_clock_lasts_over_a_crash_and_is_not_repeated() -> None:
    world = World(lambda boot: boot, PlainChoices())
    faults = FaultInjector(FaultPlan.parse("clock * #1 back:90s"))
    steps = []
    for _ in range(2):
        boot = world.boot()
        faults.install(world.disk, world.clock)
        boot.clock.wall_ns()
        steps.append(boot.clock.wall_ns() - boot.clock.now_ns - EPOCH_NS)
        world.kill()
    assert steps == [-90 * SECOND_NS] * 2
    faults.remove()
    assert world.clock.wall_now_ns == EPOCH_NS + world.clock.now_ns


def test_the_next_boot_reads_the_clock_without_the_rules_of_the_last_one() -> None:
    world = World(lambda boot: boot, PlainChoices())
    faults = FaultInjector(FaultPlan.parse("clock * #2 back:90s"))
    world.boot()
    faults.install(world.disk, world.clock)
    world.clock.wall_ns()
    world.kill()
    world.boot()
    world.clock.wall_ns()
    assert faults.fired == (0,)


def test_a_rule_on_the_clock_needs_a_clock() -> None:
    with pytest.raises(HarnessError, match="a rule on the clock needs a clock"):
        FaultInjector(FaultPlan.parse("clock * #1 back:90s")).install(Disk())


def test_removing_an_injector_that_has_no_disk_changes_nothing() -> None:
    faults = FaultInjector(FaultPlan.parse("write * EIO"))
    faults.remove()
    faulty = booted(faults, Disk().snapshot())
    assert faulty.disk.interposer is faults
    assert faults.plan == FaultPlan.parse("off write * EIO")


def test_removing_an_injector_leaves_the_crash_counter_before_it() -> None:
    faulty = faulty_disk("write * EIO")
    descriptor = faulty.opened("/f")
    faulty.disk.interposer = CrashCounter(faulty.disk, 1, Phase.AFTER)
    faulty.faults.remove()
    with pytest.raises(SimulatedCrash):
        faulty.process.write(descriptor, b"x")


def test_a_removed_injector_leaves_disk_and_clock_to_the_next() -> None:
    clock = SimulatedClock()
    disk = Disk(now_ns=clock.wall_ns)
    first, second = (FaultInjector(FaultPlan.parse("clock * #1 back:90s")) for _ in range(2))
    first.install(disk, clock)
    clock.wall_ns()
    first.remove()
    assert (disk.interposer, disk.descriptor_interposer, clock.interposer) == (None, None, None)
    second.install(disk, clock)
    clock.wall_ns()
    second.remove()
    assert (first.fired, second.fired) == ((1,), (1,))
    assert clock.wall_now_ns == EPOCH_NS + clock.now_ns
