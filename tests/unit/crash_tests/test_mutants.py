"""The mutants: which there are, and that nothing but the hole is wrong with their parts."""

from __future__ import annotations

import pytest

from crash_tests.mutants.careless_files import ForgottenBarriers
from crash_tests.mutants.registry import MUTANTS, mutant_named
from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices
from sim.errors import HarnessError
from sim.world import World
from system.ports import FileKind, OpenMode

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22)


def test_every_row_of_agents_and_recovery_has_its_mutant() -> None:
    rows = [int(identity.partition("-")[0][1:]) for identity in MUTANTS]
    assert tuple(dict.fromkeys(rows)) == ROWS
    storage = {
        identity: mutant.machine
        for identity, mutant in MUTANTS.items()
        if mutant.machine != "runtime"
    }
    assert storage == {
        "R1": "event-log-pending",
        "R2": "event-log-pending",
        "R3": "event-log-pending",
        "R8": "session-store",
        "R9": "event-log-framed",
        "R18": "session-store",
        "R19": "event-log-framed",
        "R19-fsync": "event-log-framed",
    }
    assert mutant_named("R8") is MUTANTS["R8"]


def test_an_unknown_mutant_is_one_sentence_naming_the_known_ones() -> None:
    with pytest.raises(
        HarnessError,
        match=r"^unknown mutant 'R99'; known are R1, R2, R3, R4, R5, R6, R6-permit, R7",
    ):
        mutant_named("R99")


def test_forgotten_barriers_are_all_that_a_careless_file_system_lacks() -> None:
    world = World(simulated_host, PlainChoices())
    careful = world.boot().files
    files = ForgottenBarriers(careful, lambda path: path == "a")
    files.mkdir("a")
    files.mkdir("b")
    files.open("a/f", OpenMode.CREATE).close()
    files.replace("a/f", "b/f")
    assert (files.listdir("b"), files.kind("b/f"), files.kind("a/f")) == (
        ["f"],
        FileKind.FILE,
        None,
    )
    unsynced = len(world.disk.unsynced().micros)
    files.sync_dir("a")
    assert len(world.disk.unsynced().micros) == unsynced
    files.sync_dir("b")
    assert len(world.disk.unsynced().micros) < unsynced
    files.unlink("b/f")
    files.rmdir("b")
    assert files.kind("b") is None
