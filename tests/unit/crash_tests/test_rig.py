"""The ports of the runtime on the simulated machine, and the memory that they release."""

from __future__ import annotations

import gc
import weakref

import pytest

from crash_tests.rig.host import simulated_host
from crash_tests.targets.watched_providers import WatchedProviders
from oracles.runtime.shadow_turns import ShadowTurns
from sim.choices import PlainChoices
from sim.world import World
from system.ports import FileKind, OpenMode


def test_the_file_port_makes_the_calls_that_its_methods_name() -> None:
    files = World(simulated_host, PlainChoices()).boot().files
    with pytest.raises(FileNotFoundError):
        files.open("f", OpenMode.READ)
    file = files.open("f", OpenMode.CREATE)
    file.lock()
    assert file.pwrite(b"abc", 0) == 3
    file.truncate(2)
    file.fsync()
    file.close()
    with pytest.raises(FileExistsError):
        files.open("f", OpenMode.CREATE)
    file = files.open("/f", OpenMode.APPEND)
    assert file.append(b"Z") == 1
    file.fdatasync()
    assert (file.size(), file.pread(9, 1)) == (3, b"bZ")
    file.close()
    files.replace("f", "g")
    assert (files.kind("f"), files.kind("g"), files.listdir("")) == (None, FileKind.FILE, ["g"])
    files.unlink("g")
    files.mkdir("d")
    files.rmdir("d")
    assert files.listdir("") == []


def test_the_database_port_reopens_after_a_kill() -> None:
    world = World(simulated_host, PlainChoices())
    connection = world.boot().database.open("state.db")
    connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (7)").fetchall()
    world.kill()
    again = world.boot().database.open("state.db")
    assert again.execute("SELECT x FROM t").fetchall() == [(7,)]
    world.kill()


def test_watched_providers_are_freed_with_their_target() -> None:
    gc.disable()
    try:
        watched = WatchedProviders(ShadowTurns())
        providers, kept = watched.by_name, weakref.ref(watched)
        del watched
        assert kept() is not None
        del providers
        assert kept() is None
    finally:
        gc.enable()
