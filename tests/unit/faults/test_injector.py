"""The fault injector: rules compose, count, are switched, and must have fired."""

from __future__ import annotations

from itertools import count

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from faults.injector import FaultInjector, NeverFired
from faults.plan import FaultPlan
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import HarnessError, SimulatedCrash
from tests.unit.faults.faulty_disk import booted, faulty_disk


def test_two_rules_at_one_call_compose() -> None:
    faulty = faulty_disk("read * short:4B; read * rot:0", {"/f": b"a" * 100})
    assert len(faulty.read("/f")) == 4
    assert faulty.faults.fired[0] == 1
    refused = faulty_disk("write * #1 short:4B; write * #1 EIO")
    with pytest.raises(OSError, match="Input/output"):
        refused.process.write(refused.opened("/f"), b"123456")
    assert refused.read("/f") == b""


def test_where_two_rules_strike_at_one_call_the_first_has_its_way_first() -> None:
    faulty = faulty_disk("write * #1 EIO; write * #1 EINTR", {"/f": b""})
    descriptor = faulty.opened("/f")
    with pytest.raises(OSError, match="Input/output"):
        faulty.process.write(descriptor, b"x")
    with pytest.raises(InterruptedError):
        faulty.process.write(descriptor, b"x")


def test_every_rule_of_a_plan_learns_of_the_next_lifetime() -> None:
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


def test_counts_go_on_over_lifetimes() -> None:
    faulty = faulty_disk("read * #2 EIO", {"/f": b"x"})
    faulty.read("/f")
    again = booted(faulty.faults, faulty.disk.snapshot())
    with pytest.raises(OSError, match="Input/output"):
        again.read("/f")


def test_a_fault_that_never_fired_is_an_error_of_the_harness() -> None:
    faulty = faulty_disk("read * #1 EIO; read *.other #1 EIO", {"/f": b"x"})
    with pytest.raises(OSError, match="Input/output"):
        faulty.read("/f")
    with pytest.raises(NeverFired, match=r"^planned but never injected: read \*.other #1 EIO$"):
        faulty.faults.assert_fired()


def test_a_plan_whose_faults_all_fired_is_fine() -> None:
    faulty = faulty_disk("read * #1 EIO", {"/f": b"x"})
    with pytest.raises(OSError, match="Input/output"):
        faulty.read("/f")
    faulty.faults.assert_fired()


def test_a_disk_takes_one_injector() -> None:
    disk = Disk()
    FaultInjector(FaultPlan()).install(disk)
    with pytest.raises(HarnessError, match="has an interposer already"):
        FaultInjector(FaultPlan()).install(disk)


def test_a_crash_counter_stands_before_the_injectors() -> None:
    faulty = faulty_disk("write * #1 short:4B; open * above 0 EMFILE")
    faulty.faults.switch(1, on=False)
    descriptor = faulty.opened("/f")
    faulty.disk.interposer = CrashCounter(faulty.disk, 2, Phase.AFTER)
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


def test_the_clock_steps_back_once_and_goes_on_from_there() -> None:
    faults = FaultInjector(FaultPlan.parse("clock * #3 back:90s"))
    clock = faults.clock(count(1_000_000_000_000, 1_000_000_000).__next__)
    assert [clock() // 1_000_000_000 for _ in range(5)] == [1000, 1001, 912, 913, 914]
    assert faults.fired == (1,)
    faults.lift()
    assert clock() // 1_000_000_000 == 1005


def test_time_stamps_of_the_disk_step_back_too() -> None:
    faulty = faulty_disk("clock * #1 back:90s", {"/f": b""})
    before_ns = faulty.process.stat("/f").st_mtime_ns
    faulty.process.write(faulty.opened("/f"), b"x")
    assert faulty.process.stat("/f").st_mtime_ns < before_ns - 80_000_000_000
    faulty.faults.assert_fired()


def test_a_plan_without_a_clock_fault_leaves_the_clock_alone() -> None:
    now_ns = count().__next__
    assert FaultInjector(FaultPlan()).clock(now_ns) is now_ns
