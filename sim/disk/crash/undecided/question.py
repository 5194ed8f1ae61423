"""Questions of a boot to its disk, and their answers, which are plain values."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from sim.disk.cache.operation import Operation

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


class DroppedPages(NamedTuple):
    """A question for the content of the pages that the last operation of a boot has dropped.

    ``operations`` are all of the boot, without their times. The answer has pairs of a block, by
    number, and its bytes.
    """

    operations: tuple[Operation, ...]

    @classmethod
    def after(cls, operations: Iterable[Operation]) -> DroppedPages:
        """Return the question after these operations."""
        return cls(tuple(_timeless(each) for each in operations))

    def __str__(self) -> str:
        return f"the dropped pages of inode {self.operations[-1].inode}"


def _timeless(operation: Operation) -> Operation:
    times: dict[str, Any] = {name: 0 for name in operation._fields if name.endswith("_ns")}
    return operation._replace(**times)


class NewInode(NamedTuple):
    """An inode that the boot meets for the first time; it gets the next number."""

    mode: int
    uid: int
    gid: int
    link_text: str


Answer: TypeAlias = int | bytes | tuple[str, ...] | NewInode | tuple[object, ...]
"""An entry is an inode that was met before, or ``NewInode``, or 0 for a name that is not there."""
