"""``open`` over a process: the real buffers of ``io``, above a ``RawFile``.

The content of a ``BufferedWriter`` or a ``TextIOWrapper`` is process memory, which a kill loses.
After the death of its process, a file object raises ``PowerOff`` when it is used or closed. When
it is only collected, its buffer is discarded without an error or a warning.
"""

from __future__ import annotations

import io
import os
import warnings
from functools import lru_cache
from typing import Final, cast

from sim.disk.calls.arguments import c_int, truth
from sim.disk.calls.interpreter import BUFFER_BYTES
from sim.disk.calls.path_name import FileDescriptorOrPath, StrOrBytesPath
from sim.disk.calls.raw_file import FileProcess, Opener, RawFile

FileObject = RawFile | io.BufferedReader | io.BufferedWriter | io.BufferedRandom | io.TextIOWrapper

_LINES: Final = 1
_CALLER: Final = 3


def open_file(
    process: FileProcess,
    file: FileDescriptorOrPath,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Opener | None = None,
) -> FileObject:
    """Open ``file`` as ``io.open`` does; without ``encoding``, text has that of the locale.

    Raises ``ValueError`` for arguments that exclude one another, ``OSError`` as ``open(2)``.
    """
    if type(file) is not str and not hasattr(type(file), "__index__"):
        file = os.fspath(cast("StrOrBytesPath", file))
    buffering = c_int(buffering)
    if closefd is not True:
        closefd = truth(closefd)
    if type(mode) is not str:
        _check_text("mode", mode, "str")
    if encoding is not None or errors is not None or newline is not None:
        _check_optional_text(encoding=encoding, errors=errors, newline=newline)
    _check_mode(mode)
    is_binary = "b" in mode
    if is_binary:
        if encoding is not None or errors is not None or newline is not None:
            _check_binary(encoding=encoding, errors=errors, newline=newline)
        if buffering == _LINES:
            warnings.warn(
                "line buffering (buffering=1) isn't supported in binary mode, "
                "the default buffer size will be used",
                RuntimeWarning,
                stacklevel=_CALLER,
            )
    raw = RawFile(process, file, mode.replace("t", ""), closefd=closefd, opener=opener)
    if buffering == 0 and is_binary:
        return raw
    try:
        if buffering == 0:
            raise ValueError("can't have unbuffered text I/O")
        buffer = _buffered(raw, BUFFER_BYTES if buffering < 0 or buffering == _LINES else buffering)
        if is_binary:
            return buffer
        text = io.TextIOWrapper(
            buffer, encoding, errors, newline, line_buffering=buffering == _LINES
        )
    except BaseException:
        raw.close()
        raise
    vars(text)["mode"] = mode
    return text


def _buffered(
    raw: RawFile, size_bytes: int
) -> io.BufferedReader | io.BufferedWriter | io.BufferedRandom:
    way = raw.way
    if not way.writable:
        return io.BufferedReader(raw, size_bytes)
    if not way.readable:
        return io.BufferedWriter(raw, size_bytes)
    return io.BufferedRandom(raw, size_bytes)


def _check_optional_text(**values: object) -> None:
    for name, value in values.items():
        if value is not None:
            _check_text(name, value, "str or None")


def _check_text(name: str, value: object, accepted: str) -> None:
    if not isinstance(value, str):
        kind = "None" if value is None else type(value).__name__
        raise TypeError(f"open() argument '{name}' must be {accepted}, not {kind}")


@lru_cache(maxsize=64)
def _check_mode(mode: str) -> None:
    if set(mode) - set("rwxabt+") or len(set(mode)) != len(mode):
        raise ValueError(f"invalid mode: {mode!r}")
    if "b" in mode and "t" in mode:
        raise ValueError("can't have text and binary mode at once")
    if len(set(mode) & set("rwxa")) > 1:
        raise ValueError("must have exactly one of create/read/write/append mode")


def _check_binary(**unwanted: str | None) -> None:
    for name, value in unwanted.items():
        if value is not None:
            article = "an" if name[0] in "aeiou" else "a"
            raise ValueError(f"binary mode doesn't take {article} {name} argument")
