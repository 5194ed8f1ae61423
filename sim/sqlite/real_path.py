"""Paths as SQLite's unix VFS makes them: absolute, and without symbolic links.

SQLite asks for the full path once, and derives the names of journal and WAL from it; they
must lie beside the file, not beside a link to it.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from sim.disk.cache.inode import ROOT
from sim.disk.os_error import os_error

if TYPE_CHECKING:
    from sim.disk.cache.inode import Inode
    from sim.disk.cache.inode_table import InodeTable
    from sim.disk.calls.process import Process

LINKS_MAX: Final = 100


def inode_at(inodes: InodeTable, path: str) -> Inode | None:
    """Return what an absolute path without links means, or None."""
    inode = inodes.get(ROOT)
    for name in path.split("/"):
        if name:
            number = inode.entries.get(name) if inode is not None else None
            if number is None:
                return None
            inode = inodes.get(number)
    return inode


def real_path(process: Process, path: str) -> str:
    """Return the absolute path of ``path``; what is missing at its end may be created.

    Raises ``OSError`` (ELOOP) after ``LINKS_MAX`` symbolic links.
    """
    names = path.split("/")[::-1]
    if not path.startswith("/"):
        names += process.getcwd().split("/")[::-1]
    found: list[str] = []
    links = 0
    while names:
        name = names.pop()
        if name == "..":
            del found[-1:]
        elif name not in {"", "."}:
            found.append(name)
            inode = inode_at(process.disk.cache, "/".join(found))
            if inode is not None and inode.link_text:
                links += 1
                if links > LINKS_MAX:
                    raise os_error(errno.ELOOP, path)
                found = [] if inode.link_text.startswith("/") else found[:-1]
                names += inode.link_text.split("/")[::-1]
    return "/" + "/".join(found)
