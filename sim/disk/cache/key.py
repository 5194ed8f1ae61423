"""Keys: one integer for the visible state of a disk, updated as parts of it change.

Two states of one disk have equal keys if a program cannot distinguish them: the same names
for the same inodes, with the same contents, sizes, permissions and owners. Times do not
count, nor does an inode that no path leads to.

A key is the sum of the keys of its inodes; the key of an inode is a hash of its fields and
of a sum over its blocks or entries. So the cost of an update grows with the change. The
terms are hashes of 64 bits (with the ``hash`` of a tuple, two sizes that grow by the same
amount cancel out): among a million states, the probability of a false match is below 1 in 10^7.
Keys do not depend on ``PYTHONHASHSEED``.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from immutables import Map
from xxhash import xxh3_64_intdigest

from sim.disk.cache.inode import Inode, block_key

_FIELDS: Final = Struct("<6Q")
_MASK: Final = (1 << 64) - 1


def entry_key(name: str, number: int) -> int:
    """Return the share of an entry in the ``content_key`` of its directory."""
    return xxh3_64_intdigest(name.encode("utf-8", "surrogateescape"), number)


def inode_key(inode: Inode) -> int:
    """Return the share of an inode in the key of its disk: 0 for an inode without a name."""
    if not inode.links:
        return 0
    content = inode.content_key
    if content is None:
        content = content_key(inode)
    fields = (inode.number, inode.mode, inode.uid, inode.gid, inode.size, content & _MASK)
    return xxh3_64_intdigest(_FIELDS.pack(*fields))


def content_key(inode: Inode) -> int:
    """Return the sum over the blocks or entries of an inode, which is computed at most once."""
    if inode.content_key is None:
        inode.content_key = _content_key(inode)
    return inode.content_key


def key_of(inodes: Iterable[Inode]) -> int:
    """Return the sum of the keys of these inodes."""
    return sum(map(inode_key, inodes))


def unreachable_key(inodes: Map[int, Inode], directories: Iterable[int]) -> int:
    """Return the share of those of ``directories`` that no path leads to, and of all below them."""
    total = 0
    counted: set[int] = set()
    names_lost: dict[int, int] = {}
    for number in directories:
        if number in inodes and not _reachable(inodes, number):
            total += _subtree_key(inodes, number, counted, names_lost)
    return total


def _reachable(inodes: Map[int, Inode], number: int) -> bool:
    seen = set()
    while number not in seen:
        seen.add(number)
        inode = inodes.get(number)
        if inode is None or not inode.links:
            return False
        if inode.parent == number:
            return True
        number = inode.parent
    return False


def _subtree_key(
    inodes: Map[int, Inode], number: int, counted: set[int], names_lost: dict[int, int]
) -> int:
    if number in counted:
        return 0
    counted.add(number)
    directory = inodes[number]
    total = inode_key(directory)
    for child in directory.entries.values():
        inode = inodes[child]
        if inode.is_directory:
            total += _subtree_key(inodes, child, counted, names_lost)
            continue
        names_lost[child] = names_lost.get(child, 0) + 1
        if names_lost[child] == inode.links:
            total += inode_key(inode)
    return total


def _content_key(inode: Inode) -> int:
    if inode.is_directory:
        return sum(entry_key(name, number) for name, number in inode.entries.items())
    if inode.is_symlink:
        return entry_key(inode.link_text, 0)
    return sum(block_key(index, block) for index, block in inode.blocks.items())
