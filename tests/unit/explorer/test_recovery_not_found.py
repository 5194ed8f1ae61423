"""A recovery that may miss an fsync which was not found: the report does not deny that it helps."""

from __future__ import annotations

from oracles.history import History, Known
from oracles.violation import LostAck, TornRecord
from powercut.explorer.missing_barrier import Gap
from powercut.report.repair import repair_lines
from sim.disk.calls.process import Process
from tests.unit.explorer.test_recovery_causes import diagnosed, keep, sync_root, write


def _announce(process: Process, ack: History) -> None:
    """Acknowledge a file that is not synced, and announce the rename of another one.

    The note is the last file that was synced, so on btrfs no change overtakes its rename.
    """
    keep(process, ack, "/new")
    write(process, "/note.tmp", synced=True)
    write(process, "/lost", synced=False)
    ack("/lost")
    process.rename("/note.tmp", "/note")
    sync_root(process)
    ack("/note")


def _renames(process: Process, known: Known) -> None:
    """Rename the file if the note is there, which a power cut may lose."""
    if {"note", "new"} <= {*process.listdir("/")}:
        process.rename("/new", "/used")
    names = {*process.listdir("/")}
    if "/lost" in known.acknowledged and not ("lost" in names and process.stat("/lost").st_size):
        raise LostAck("a file is lost")
    if "used" in names and "note" not in names:
        raise TornRecord("the file is renamed, and no note says so")


def test_an_fsync_of_the_recovery_may_help_although_none_was_found() -> None:
    """With the fsync of the file, btrfs may lose the note that the recovery has read."""
    found = diagnosed(_announce, _renames, ("btrfs",))
    (cause,) = found.causes
    assert isinstance(cause.gap, Gap)
    (line,) = repair_lines(found)
    assert line.endswith(" still fails with it, and the recovery may miss an fsync")
