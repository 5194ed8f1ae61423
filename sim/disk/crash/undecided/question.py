"""Questions of a boot to its disk, and their answers, which are plain values."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

FIRST_NEW: Final = 1 << 40
"""The number of the first inode that a boot creates; those that it meets count from the root."""


class Property(StrEnum):
    """The property of an inode that is asked for."""

    SIZE = "size"
    DATA = "data"
    ENTRY = "entry"
    NAMES = "names"
    LINKS = "links"
    PARENT = "parent"
    ATTRIBUTES = "attributes"
    TIMES = "times"
    NUMBER = "number"
    LOST_DATA = "lost data"


class Question(NamedTuple):
    """A question about one inode, which is named by the order in which the boot met it.

    1 is the root. ``start`` and ``end`` are bytes; ``end`` of a size is the largest answer that
    is wanted. ``name`` is that of an entry.
    """

    wanted: Property
    inode: int
    start: int = 0
    end: int = 0
    name: str = ""

    def __str__(self) -> str:
        match self.wanted:
            case Property.DATA:
                return f"bytes {self.start} to {self.end} of inode {self.inode}"
            case Property.ENTRY:
                return f"entry {self.name!r} of directory {self.inode}"
            case Property.NAMES:
                return f"names in directory {self.inode}"
            case _:
                return f"{self.wanted} of inode {self.inode}"


class NewInode(NamedTuple):
    """An inode that the boot meets for the first time; it gets the next number."""

    mode: int
    uid: int
    gid: int
    link_text: str


Answer: TypeAlias = int | bytes | tuple[str, ...] | NewInode | tuple[object, ...]
"""An entry is an inode that was met before, or ``NewInode``, or 0 for a name that is not there."""
