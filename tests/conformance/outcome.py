"""The outcome of a call, in a form in which both arms can be compared."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from tests.conformance.arms import Arm

EXPLICIT_NS = 1_200_000_000_000_000_000
"""Times below it were set by a test; later ones were read from a clock and appear as ``now``."""


_ERRORS = (
    OSError, ValueError, TypeError, OverflowError, BufferError, NotImplementedError, Warning,
)  # fmt: skip


def outcome(arm: Arm, call: Callable[[], Any]) -> Any:
    """Return the result or the error of ``call``, without the paths of the arm."""
    try:
        return neutral(arm, call())
    except _ERRORS as error:
        return failure(arm, error)


def failure(arm: Arm, error: Exception) -> tuple[object, ...]:
    """Return the type of an error, its errno and the file names in it, or its message.

    The messages of the simulated process are those of CPython 3.11.
    """
    if not isinstance(error, OSError):
        is_known = sys.version_info[:2] == (3, 11)
        return (type(error).__name__, str(error) if is_known else "")
    names = [
        "descriptor" if isinstance(name, int) else neutral(arm, name)
        for name in (error.filename, error.filename2)
    ]
    return (type(error).__name__, error.errno, *names)


def neutral(arm: Arm, value: Any) -> Any:
    """Return a result without the paths of the arm."""
    if isinstance(value, os.stat_result):
        return attributes(value)
    if isinstance(value, list):
        return sorted(neutral(arm, item) for item in value)
    if isinstance(value, str):
        return value.replace(arm.top, "<top>")
    if isinstance(value, bytes):
        return value.replace(os.fsencode(arm.top), b"<top>")
    return value


def attributes(found: os.stat_result) -> dict[str, Any]:
    """Return the attributes that are the same on every file system.

    Not compared: inode numbers, the sizes of directories and of links (the arms lie at paths of
    different lengths), and times that were read from a clock.
    """
    return {
        "mode": oct(found.st_mode),
        "links": found.st_nlink,
        "owner": (found.st_uid, found.st_gid),
        "size": found.st_size if stat.S_ISREG(found.st_mode) else None,
        "modified": found.st_mtime_ns if found.st_mtime_ns < EXPLICIT_NS else "now",
    }


def tree(arm: Arm) -> dict[str, Any]:
    """Return the directory of an arm and all below it: attributes, content, shared inodes."""
    found: dict[str, Any] = {}
    _add(arm, os.path.dirname(arm.top), "<above>", found, {})
    return found


def _add(
    arm: Arm, path: str, shown: str, found: dict[str, Any], seen: dict[int, dict[str, Any]]
) -> None:
    status = arm.os.lstat(path)
    if status.st_ino in seen:
        found[shown] = seen[status.st_ino]
        return
    entry = found[shown] = seen[status.st_ino] = {"first name": shown, **attributes(status)}
    if not (arm.is_simulated or os.geteuid() == 0 or stat.S_ISLNK(status.st_mode)):
        arm.os.chmod(path, status.st_mode | stat.S_IRWXU)
    if stat.S_ISLNK(status.st_mode):
        entry["target"] = neutral(arm, arm.os.readlink(path))
    elif stat.S_ISREG(status.st_mode):
        with arm.open(path, "rb") as file:
            entry["content"] = file.read()
    else:
        for name in sorted(arm.os.listdir(path)):
            _add(arm, f"{path}/{name}", f"{shown}/{name}", found, seen)
