"""A path, split into its components: ``path_converter`` of CPython, then ``getname`` of Linux.

It depends on no disk, so the same text always gives the same value, which is cached.
"""

from __future__ import annotations

import errno
import os
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sim.disk.cache.refusal import NAME_MAX
from sim.disk.calls.arguments import path_descriptor
from sim.disk.calls.interpreter import BUFFER_IS_PATH, NO_DESCRIPTOR

PATH_MAX: Final = 4096
DOTS: Final = frozenset({"", ".", ".."})

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
FileDescriptorOrPath = int | StrOrBytesPath

_PATH: Final = "string, bytes or os.PathLike"
_PATH_OR_DESCRIPTOR: Final = "string, bytes, os.PathLike or integer"
_PATH_DESCRIPTOR_OR_NONE: Final = "string, bytes, os.PathLike, integer or None"
_CALLER: Final = 4


@dataclass(frozen=True, slots=True)
class PathName:
    """``parents`` and then ``last``, which is empty for a path of slashes only.

    ``slash`` is True if slashes follow ``last``, which must then name a directory. ``head`` is
    the text before ``last``, or None if the path needs the full rules of resolution: it has dots,
    a slash at the end, or a name that is too long. ``error`` is the errno with which Linux
    refuses the path at once (ENOENT if it is empty, ENAMETOOLONG from 4,096 bytes), or 0.
    """

    text: str
    head: str | None
    parents: tuple[str, ...]
    last: str
    absolute: bool
    slash: bool
    error: int = 0


def path_name(path: object, call: str, argument: str = "path") -> PathName:
    """Split the path that is ``argument`` of the system call ``call``.

    Raises ``ValueError`` for a null byte and ``TypeError`` for an object that is no path.
    """
    return split(path if type(path) is str else _text(path, call, argument, _PATH))


def path_or_descriptor(path: Any, call: str) -> PathName | int:
    """Split a path, or convert a descriptor that is given in its place."""
    if type(path) is str:
        return split(path)
    if hasattr(type(path), "__index__"):
        return path_descriptor(path)
    return split(_text(path, call, "path", _PATH_OR_DESCRIPTOR))


def optional_path_or_descriptor(path: Any, call: str) -> PathName | int:
    """Split a path, or convert a descriptor; without either, the current directory."""
    if type(path) is str:
        return split(path)
    if path is None:
        return split(".")
    if hasattr(type(path), "__index__"):
        number = path_descriptor(path)
        return number if number != NO_DESCRIPTOR else split(".")
    return split(_text(path, call, "path", _PATH_DESCRIPTOR_OR_NONE))


def refuse_beside_descriptor(
    call: str, where: PathName | int, dir_fd: int | None, *, follow: bool
) -> None:
    """Raise ``ValueError`` for a ``dir_fd`` or ``follow_symlinks=False`` beside a descriptor."""
    if isinstance(where, PathName):
        return
    if dir_fd is not None:
        raise ValueError(f"{call}: can't specify dir_fd without matching path")
    if not follow and (where > 0 or NO_DESCRIPTOR is None):
        raise ValueError(f"{call}: cannot use fd and follow_symlinks together")


@lru_cache(maxsize=8192)
def split(text: str) -> PathName:
    """Split the text of a path; ``ValueError`` for a null byte."""
    if "\0" in text:
        raise ValueError("embedded null byte")
    error = 0 if text else errno.ENOENT
    if len(os.fsencode(text)) >= PATH_MAX:
        error = errno.ENAMETOOLONG
    names = [name for name in text.split("/") if name]
    last = names.pop() if names else ""
    slash = bool(last) and text.endswith("/")
    special = error or slash or last in DOTS or is_too_long(last)
    if not special:
        special = any(name in DOTS or is_too_long(name) for name in names)
    return PathName(
        text=text,
        head=None if special else text.removesuffix(last),
        parents=tuple(names),
        last=last,
        absolute=text.startswith("/"),
        slash=slash,
        error=error,
    )


def is_too_long(name: str) -> bool:
    """Return whether a name of one component is longer than a directory entry can be."""
    return len(name) > NAME_MAX // 4 and len(os.fsencode(name)) > NAME_MAX


def _text(path: Any, call: str, argument: str, accepted: str) -> str:
    """Decode a path; a buffer is one, with the warning that CPython 3.11 gives."""
    if isinstance(path, str):
        return str.__str__(path)
    message = f"{call}: {argument} should be {accepted}, not {type(path).__name__}"
    if BUFFER_IS_PATH and isinstance(path, bytearray | memoryview):
        warnings.warn(message, DeprecationWarning, stacklevel=_CALLER)
        path = bytes(path)
    elif not isinstance(path, bytes) and not hasattr(type(path), "__fspath__"):
        raise TypeError(message)
    text = os.fspath(path)
    if isinstance(text, bytes) and b"\0" in text:
        raise ValueError(f"{call}: embedded null character in {argument}")
    return str.__str__(os.fsdecode(text))
