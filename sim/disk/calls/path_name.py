"""A path, taken apart once: what ``getname`` and ``link_path_walk`` of Linux do with its text.

It knows nothing of any disk, so the same text always gives the same value and is kept.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sim.disk.os_error import os_error

NAME_MAX: Final = 255
PATH_MAX: Final = 4096

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
FileDescriptorOrPath = int | StrOrBytesPath

_DOTS = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class PathName:
    """``parents`` and then ``last``, which is empty for a path of slashes only.

    ``slash`` says that slashes follow ``last``: it must then name a directory. ``plain``
    says that nothing in it needs care: no dots, no trailing slash, no name that is too long;
    the text before ``last`` is then its ``head``.
    """

    text: str
    head: str
    parents: tuple[str, ...]
    last: str
    absolute: bool
    slash: bool
    plain: bool


def path_name(path: StrOrBytesPath, call: str) -> PathName:
    """Take ``path`` apart, on behalf of the system call named ``call``.

    Raises ``OSError`` (ENOENT for an empty path, ENAMETOOLONG from 4,096 bytes),
    ``ValueError`` for a null byte and ``TypeError`` for what is no path, as ``os`` does.
    """
    if type(path) is str:
        return _parsed(path)
    try:
        text = os.fspath(path)
    except TypeError:
        kind = type(path).__name__
        message = f"{call}: path should be string, bytes or os.PathLike, not {kind}"
        raise TypeError(message) from None
    try:
        return _parsed(os.fsdecode(text))
    except OSError as failed:
        raise os_error(failed.errno or errno.EINVAL, text) from None


@lru_cache(maxsize=8192)
def plain_name(text: str) -> PathName | None:
    """Take a path apart that needs no care; None for every other."""
    try:
        name = _parsed(text)
    except (OSError, ValueError):
        return None
    return name if name.plain else None


@lru_cache(maxsize=8192)
def _parsed(text: str) -> PathName:
    if not text:
        raise os_error(errno.ENOENT, text)
    if "\0" in text:
        raise ValueError("embedded null byte")
    if len(os.fsencode(text)) >= PATH_MAX:
        raise os_error(errno.ENAMETOOLONG, text)
    names = [name for name in text.split("/") if name]
    last = names.pop() if names else ""
    slash = bool(last) and text.endswith("/")
    careful = slash or last in _DOTS or any(name in _DOTS or is_too_long(name) for name in names)
    return PathName(
        text=text,
        head=text.removesuffix(last),
        parents=tuple(names),
        last=last,
        absolute=text.startswith("/"),
        slash=slash,
        plain=not (careful or is_too_long(last)),
    )


def is_too_long(name: str) -> bool:
    """Say whether a name of one component is longer than a directory entry can be."""
    return len(name) > NAME_MAX // 4 and len(os.fsencode(name)) > NAME_MAX
