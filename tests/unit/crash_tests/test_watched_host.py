"""A watched host: the callers of its operations are functions of ``system``."""

from __future__ import annotations

import pytest

from crash_tests.rig.host import simulated_host
from crash_tests.rig.watched_host import watched
from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from powercut.fuzz.coverage import Site, Watch
from sim.choices import PlainChoices
from sim.errors import PowerOff
from sim.world import World
from system.agents.agent import Agent
from system.agents.history import History
from system.ports import Host, OpenMode
from system.recovery.recovery import PASSES
from system.runtime import Runtime
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore
from system.storage.atomic_file import write_atomic
from system.storage.durable_directory import make_durable_directory
from system.storage.framing import Framing

PASS_NAMES = tuple(recover.__name__ for recover in PASSES)


def watched_boot() -> tuple[World[Host], Host, Watch]:
    world = World(simulated_host, PlainChoices())
    host, watch = watched(world.boot(), world.disk)
    return world, host, watch


def words(watch: Watch) -> list[tuple[str, str]]:
    return [(site.operation, site.callers[0].function) for site in watch.sites]


def test_first_caller_of_an_operation_is_the_innermost_function_of_the_program() -> None:
    _, host, watch = watched_boot()
    write_atomic(host.files, "f", b"content", host.ids)
    assert words(watch) == [
        ("Create", "_create_temporary"), ("Write", "write_all"), ("Sync", "replace_by_pieces"),
        ("Rename", "replace_by_pieces"), ("Sync directory", "write_atomic"),
    ]  # fmt: skip
    assert all(site.is_for("write_atomic") for site in watch.sites)
    assert str(watch.sites[3]).startswith("Rename at system/storage/atomic_file.py:")


def test_operations_on_directories_are_named_as_such() -> None:
    _, host, watch = watched_boot()
    make_durable_directory(host.files, "d")
    host.files.rmdir("d")
    assert [site.operation for site in watch.sites] == [
        "Create directory", "Sync directory", "Unlink directory",
    ]  # fmt: skip


def test_operation_of_other_code_has_no_callers() -> None:
    _, host, watch = watched_boot()
    host.files.open("f", OpenMode.CREATE).close()
    assert watch.sites == [Site("Create", ())]


def test_callers_of_a_worker_s_operation_include_the_coroutine_that_queued_it() -> None:
    world, host, watch = watched_boot()

    async def careful() -> None:
        await host.workers.run(lambda: write_atomic(host.files, "f", b"content", host.ids))

    async def agent() -> None:
        store = SessionStore(host)
        record = SessionRecord("5" * 32, "scripted", "", SessionState.ACTIVE)
        made = Agent(host, store, "a", "5" * 32, "log", Framing.FRAMED, History())
        made.log.record = record
        make_durable_directory(host.files, f"agents/{'5' * 32}")
        await made.log.save(SessionState.SUSPENDED, b"")

    world.loop.run_until_complete(careful())
    assert not any(site.is_for("save") for site in watch.sites)
    before = len(watch.sites)
    world.loop.run_until_complete(agent())
    world.kill()
    written = [site for site in watch.sites[before:] if site.is_for("write_atomic")]
    assert len(written) == 5
    assert all(site.is_for("AgentLog.save") for site in written)


def test_callers_of_an_operation_of_recovery_include_one_of_its_passes() -> None:
    world, host, watch = watched_boot()
    recovery = Runtime.recover(host, {})
    watch.main = recovery
    world.loop.run_until_complete(recovery)
    world.kill()
    done = [{name for name in PASS_NAMES if site.is_for(name)} for site in watch.sites]
    assert done == [{"lock_root"}] * 9 + [{"open_logs"}] * 5


def test_watch_passes_a_crash_on() -> None:
    world = World(simulated_host, PlainChoices())
    host = world.boot()
    counter = CrashCounter(world.disk, 2, Phase.AFTER)
    world.disk.interposer = counter
    host, watch = watched(host, world.disk)
    with pytest.raises(PowerOff):
        # The clean-up of a dead process meets it.
        write_atomic(host.files, "f", b"content", host.ids)
    assert words(watch) == [("Create", "_create_temporary"), ("Write", "write_all")]
