"""The device flags that SQLite sees are exactly the guarantees of the persistence model."""

from __future__ import annotations

import apsw
import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from sim.sqlite.connection import connect
from sim.sqlite.device import device_of

ALWAYS = {"POWERSAFE_OVERWRITE", "SUBPAGE_READ"}
UP_TO_4K = {"ATOMIC512", "ATOMIC1K", "ATOMIC2K", "ATOMIC4K"}
GUARANTEES = {
    "scc": (512, {"SEQUENTIAL", "SAFE_APPEND", *UP_TO_4K}),
    "ext4-journal": (4096, {"SEQUENTIAL", "SAFE_APPEND", *UP_TO_4K}),
    "ext4": (512, set()),
    "ext4-ordered": (512, set()),
    "ext4-writeback": (512, set()),
    "xfs": (512, set()),
    "btrfs": (4096, set()),
    "posix": (512, set()),
}


def names(characteristics: int) -> set[str]:
    """Return SQLite's names of the flags that are set."""
    return {
        name.removeprefix("SQLITE_IOCAP_")
        for name, flag in apsw.mapping_device_characteristics.items()
        if isinstance(name, str) and isinstance(flag, int) and characteristics & flag
    }


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_the_flags_of_the_table(model: str) -> None:
    sector_bytes, flags = GUARANTEES[model]
    device = device_of(MODELS[model])
    assert (device.sector_bytes, names(device.characteristics)) == (sector_bytes, flags | ALWAYS)


@pytest.mark.parametrize("model", MODELS)
def test_without_powersafe_overwrite_a_database_opens_under_whole_calls(model: str) -> None:
    """A check gets such a disk if too much data of its workload is unsynced at one moment."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    process = Process(Disk(model=MODELS[model].with_whole_calls()))
    connection = connect(process, "file:/db?psow=0", flags=flags)
    connection.execute("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize(("uri", "claimed"), [("file:/db", True), ("file:/db?psow=0", False)])
def test_a_uri_can_disable_powersafe_overwrite(uri: str, claimed: bool) -> None:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    disk = Disk(model=MODELS["btrfs"])
    connection = connect(Process(disk), uri, flags=flags)
    connection.pragma("locking_mode", "exclusive")
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (a)")
    wal_bytes = len(disk.snapshot().files()["/db-wal"])
    # Without it, each commit is padded to a sector of 4,096 bytes.
    assert wal_bytes == (8272 if claimed else 12392)
