"""The share of unreachable directories in the key of a disk."""

from __future__ import annotations

import stat
from collections.abc import Mapping

import pytest
from immutables import Map

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.key import inode_key, unreachable_key

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
