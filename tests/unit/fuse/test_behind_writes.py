"""Images behind writes: many of them share the work for the pieces before."""

from __future__ import annotations

import pytest

from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuse.behind_writes import behind_writes
from powercut.fuse.crash_search import search
from sim.disk.cache.inode_table import Inodes
from sim.disk.calls.process import Process
from sim.disk.crash import state_space
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.persistence import POSIX
from sim.disk.disk import Disk
from tests.unit.fuse.journals import acknowledged, put

FILES = 40


def test_a_piece_is_put_on_the_platter_once_for_all_images_behind_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = Disk(model=POSIX)
    for number in range(FILES):
        put(Process(disk), f"/{number}", b"two sectors" * 60)
    journal = disk.journal
    history = acknowledged(journal)
    found = search(journal, history, POSIX).found
    applied: list[MicroOperation] = []
    apply = state_space._applied

    def counted(micro: MicroOperation, inodes: Inodes, key: int) -> tuple[Inodes, int]:
        applied.append(micro)
        return apply(micro, inodes, key)

    monkeypatch.setattr(state_space, "_applied", counted)
    behind = [*behind_writes(RecordedWorkload(journal, history), "posix", found)]
    assert len({each.crash.operation for each in behind}) > FILES // 2
    assert len(applied) <= len(disk.unsynced().micros)
