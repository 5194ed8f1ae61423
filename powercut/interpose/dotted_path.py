"""Paths with ``..``, which may cross the root between the disk and the real machine.

The parent of a directory that was reached through a symbolic link is not the one that the text of
the path suggests, so links are followed name by name, as path_resolution(7) describes it.
"""

from __future__ import annotations

import os
import posixpath
import stat
from typing import Final

from sim.disk.calls.path_walk import LINKS_MAX

_HERE: Final = frozenset({"", "."})


def resolve_dots(path: str, root: str) -> tuple[str, list[str]]:
    """Resolve an absolute path up to its last ``..``; return that directory, and later names.

    The calls of ``os`` are routed. The walk stops before a name that leads to no directory, or
    that is one link too many: there the call fails, on whichever side the directory is.
    """
    place, names, links = "/", path.split("/")[::-1], 0
    while ".." in names:
        name = names.pop()
        if name in _HERE:
            continue
        if name == "..":
            place = posixpath.dirname(place)
            continue
        found = posixpath.join(place, name)
        # The directories above the root need not exist on the real machine.
        target = "" if f"{root}/".startswith(f"{found}/") else _link_text(found)
        if target is None or links == LINKS_MAX:
            names.append(name)
            break
        if target:
            links += 1
            names += target.split("/")[::-1]
        if not target or target.startswith("/"):
            place = "/" if target else found
    return place, names[::-1]


def _link_text(path: str) -> str | None:
    """Return the text of a link, an empty one of a directory, None of anything else."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return os.readlink(path)
    except OSError:
        return None
    return "" if stat.S_ISDIR(mode) else None
