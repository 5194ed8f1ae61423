"""Crash-point coverage: the callers of an operation, and the crashes that are still missing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import CrashKind, Phase
from powercut.fuzz.coverage import Coverage, Site, SubStep, Watch
from powercut.place import Place
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import PowerOff
from sim.world import World
from tests.unit.fuzz import saved_file

PROGRAM = os.path.dirname(saved_file.__file__)
WRITE = Site(
    "Write", (Place("system/a.py", "Log.append", 7), Place("system/b.py", "Agent.tell", 9))
)
STEP = SubStep("append a line", "Write", ("append", "Agent.tell"))


def watched_process(host: str = "") -> tuple[Process, Watch]:
    """Return a process, and a watch whose program is ``tests.unit.fuzz``."""
    disk = Disk()
    return Process(disk), Watch(disk, PROGRAM, host)


def words(watch: Watch) -> list[tuple[str, str]]:
    return [(site.operation, site.callers[0].function) for site in watch.sites]


def test_first_caller_of_an_operation_is_the_innermost_function_of_the_program() -> None:
    process, watch = watched_process()
    saved_file.save(process, "/f", b"content")
    assert words(watch) == [
        ("Create", "write_temporary"), ("Write", "write_all"), ("Sync", "write_temporary"),
        ("Rename", "save"), ("Sync directory", "sync_directory"),
    ]  # fmt: skip
    assert all(site.is_for("save") for site in watch.sites)
    assert str(watch.sites[3]).startswith("Rename at fuzz/saved_file.py:")


def test_operations_on_directories_are_named_as_such() -> None:
    process, watch = watched_process()
    saved_file.prepare_directory(process, "/d")
    process.rmdir("/d")
    assert [site.operation for site in watch.sites] == [
        "Create directory", "Sync directory", "Sync directory", "Unlink directory",
    ]  # fmt: skip


def test_operation_of_other_code_has_no_callers() -> None:
    # This file is the one that makes the calls.
    process, watch = watched_process(host=__file__)
    process.mkdir("/d")
    assert watch.sites == [Site("Create directory", ())]


def test_call_that_runs_later_keeps_the_callers_that_handed_it_over() -> None:
    process, watch = watched_process()
    process.mkdir("/before")

    def hand_over() -> Callable[[], object]:
        return watch.hand_over(partial(process.mkdir, "/d"))

    call = hand_over()
    call()
    process.mkdir("/after")
    handed = [site.is_for(hand_over.__qualname__) for site in watch.sites]
    assert handed == [False, True, False]


def test_main_coroutine_is_a_caller_of_the_operations_of_its_tasks() -> None:
    world = World(lambda boot: boot.process, PlainChoices())
    process = world.boot()
    watch = Watch(world.disk, PROGRAM)

    async def task() -> None:
        process.mkdir("/d")

    async def recovery() -> None:
        await asyncio.wait_for(world.loop.create_task(task()), None)

    main = recovery()
    watch.main = main
    world.loop.run_until_complete(main)
    world.kill()
    (site,) = watch.sites
    assert site.is_for(task.__qualname__, recovery.__qualname__)


def test_watch_passes_a_crash_on() -> None:
    disk = Disk()
    disk.interposer = CrashCounter(disk, 2, Phase.AFTER)
    watch = Watch(disk, PROGRAM)
    with pytest.raises(PowerOff):
        # Closing the file of a dead process meets it.
        saved_file.save(Process(disk), "/f", b"content")
    assert words(watch) == [("Create", "write_temporary"), ("Write", "write_all")]


def test_a_site_is_a_gap_until_it_was_crashed_in_every_way() -> None:
    coverage = Coverage()
    coverage.meet("send", WRITE)
    assert len(list(coverage.gaps())) == 6
    for phase in Phase:
        coverage.hit("send", WRITE, phase, CrashKind.KILL)
    gaps = list(coverage.gaps())
    assert [(gap.during, gap.phase, gap.kind) for gap in gaps] == [
        ("send", phase, CrashKind.POWER_CUT) for phase in Phase
    ]
    coverage.meet("create", WRITE)
    assert len(list(coverage.gaps())) == 9


def test_a_sub_step_names_its_missing_crashes() -> None:
    coverage = Coverage()
    for phase in (Phase.BEFORE, Phase.DURING):
        for kind in CrashKind:
            coverage.hit("send", WRITE, phase, kind)
    coverage.hit("send", WRITE, Phase.AFTER, CrashKind.KILL)
    assert list(STEP.untried(coverage)) == ["append a line: no power-cut after it"]
    other = SubStep("append a line", "Write", ("append", "Agent.commit"))
    assert len(list(other.untried(coverage))) == 6
