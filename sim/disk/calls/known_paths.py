"""The paths that one process has resolved: the dentry cache of its point of view."""

from __future__ import annotations

from sim.disk.cache.inode import Inode
from sim.disk.calls.path_name import PathName


class KnownPaths:
    """Resolved paths of one process; ``InodeTable`` clears them when a path may have moved.

    ``places``: by a path's text, the directory that holds its last component, and the path
    itself. ``directories``: by ``PathName.head``, the directory that it leads to.
    """

    __slots__ = ("directories", "places")

    def __init__(self) -> None:
        self.places: dict[object, tuple[Inode, PathName]] = {}
        self.directories: dict[str, Inode] = {}

    def clear(self) -> None:
        self.places.clear()
        self.directories.clear()
