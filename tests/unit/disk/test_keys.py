"""Disks with the same tree have the same key, whatever else is left on them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

import pytest
from immutables import Map

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.key import inode_key, unreachable_key
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import POSIX
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk

FIRST, SECOND, FILE = 2, 3, 4


def directory(number: int, parent: int, links: int, names: Mapping[str, int]) -> Inode:
    inode = Inode.new(number, stat.S_IFDIR | 0o755, 0, 0, "", 0)
    inode.parent, inode.links, inode.entries = parent, links, Map(names)
    return inode


def file() -> Inode:
    inode = Inode.new(FILE, stat.S_IFREG | 0o644, 0, 0, "", 0)
    inode.links = 1
    return inode


@pytest.mark.parametrize(
    ("parents", "links", "is_reachable"),
    [((ROOT, FIRST), 2, True), ((ROOT, FIRST), 0, False), ((SECOND, FIRST), 2, False)],
    ids=["below the root", "below a directory without a name", "in a cycle"],
)
def test_a_file_counts_if_a_path_leads_to_its_directory(
    parents: tuple[int, int], links: int, is_reachable: bool
) -> None:
    root = directory(ROOT, ROOT, 3, {"first": FIRST} if parents[0] == ROOT and links else {})
    first = directory(FIRST, parents[0], links, {"second": SECOND})
    second = directory(SECOND, parents[1], 2, {"file": FILE})
    inodes = Map({inode.number: inode for inode in (root, first, second, file())})
    lost = 0 if is_reachable else sum(inode_key(inodes[each]) for each in (FIRST, SECOND, FILE))
    assert unreachable_key(inodes, [FIRST, SECOND]) == lost
    assert unreachable_key(inodes, [SECOND]) == (lost - inode_key(first) if lost else 0)


def test_a_file_in_a_directory_that_was_replaced_does_not_count() -> None:
    """The removal of the file and the rename over its directory survive independently."""
    disk = Disk(model=POSIX)
    process = Process(disk)
    process.mkdir("/old")
    process.open("/old/file", os.O_CREAT | os.O_WRONLY)
    process.mkdir("/new")
    process.sync()
    process.unlink("/old/file")
    process.rename("/new", "/old")
    keys: dict[tuple[str, ...], set[int]] = {}
    for state in StateSpace(disk.unsynced()).all():
        tree = tuple(path for path, _ in disk.power_cut(state.survivors).tree())
        keys.setdefault(tree, set()).add(state.key)
    assert set(keys) == {
        ("/", "/new", "/old", "/old/file"), ("/", "/new", "/old"), ("/", "/old"),
    }  # fmt: skip
    assert all(len(of_one_tree) == 1 for of_one_tree in keys.values())
