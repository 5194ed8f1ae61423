"""The saved file of the engine's own tests survives its faults; the mutants name these tests."""

from __future__ import annotations

import os
from itertools import product

import pytest

from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.fault_families import RULES, FaultFamily
from powercut.fuzz.tally import Tally
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS, POSIX
from sim.disk.disk import Disk
from tests.unit.faults.faulty_disk import faulty_disk
from tests.unit.fuzz.saved_file import (
    SavedFileTarget,
    content_of,
    prepare_directory,
    save,
    saved_file,
)

DATA = b"0123456789"


def test_a_whole_file_is_read() -> None:
    process = Process(Disk())
    assert content_of(process, "/f") is None
    for data in (DATA * 300, b""):
        save(process, "/f", data)
        assert content_of(process, "/f") == data


def test_a_short_write_is_completed() -> None:
    faulty = faulty_disk("write * #1 short:4B")
    save(faulty.process, "/f", DATA)
    assert faulty.read("/f") == DATA


@pytest.mark.parametrize("plan", ["write * #1 ENOSPC", "fsync * #1 EIO:ext4", "rename * #1 EIO"])
def test_a_save_that_fails_leaves_the_old_content(plan: str) -> None:
    faulty = faulty_disk(plan, {"/f": b"old"})
    with pytest.raises(OSError, match="/f"):
        save(faulty.process, "/f", DATA)
    assert faulty.read("/f") == b"old"


def test_the_temporary_file_of_an_earlier_boot_is_removed() -> None:
    process = Process(Disk())
    assert prepare_directory(process, "/d") == 0
    process.close(process.open("/d/state.json.tmp", os.O_CREAT | os.O_WRONLY))
    save(process, "/d/state.json", DATA)
    process.close(process.open("/d/other.tmp", os.O_CREAT | os.O_WRONLY))
    assert prepare_directory(process, "/d") == 1
    assert process.listdir("/d") == ["state.json"]


@pytest.mark.parametrize("model", MODELS)
def test_the_target_survives_its_faults_under_every_model(model: str) -> None:
    together = Tally()
    for seed in range(12):
        run = SeededRun(saved_file, MODELS[model], seed, 30, swarm=True).run()
        assert run.failure is None
        together.add(run.tally)
    assert together.faults > 10
    assert together.power_cuts > 10


@pytest.mark.parametrize("family", SavedFileTarget("saved-file", save).fault_families)
def test_the_target_survives_every_rule_of_its_fault_families(family: FaultFamily) -> None:
    for rule, count in product(RULES[family], (1, 2, 5)):
        plan = rule.format(count=count, following=count + 1, size=10, sector=0)
        run = SeededRun(saved_file, POSIX, count, 8, plan).run()
        assert run.failure is None, plan


def test_the_target_leaves_out_the_families_that_it_gives_a_reason_for() -> None:
    given = {*SavedFileTarget("saved-file", save).fault_families}
    assert {*FaultFamily} - given == {
        FaultFamily.CLOCK,
        FaultFamily.DELAYED_BARRIER_ERROR,
        FaultFamily.BIT_ROT,
        FaultFamily.MISDIRECTED_WRITE,
    }
