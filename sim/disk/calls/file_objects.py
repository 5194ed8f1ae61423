"""``open`` over a handle: the real buffers of ``io``, above a ``RawFile``.

What sits in a ``BufferedWriter`` or a ``TextIOWrapper`` is process memory: a kill loses it,
as it loses that of any program. After the death of its process a file object raises
``PowerOff`` when it is used or closed, and is silent when it is only collected: its buffer
then vanishes, and nothing is written or printed.
"""

from __future__ import annotations

import io
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.calls.path_name import FileDescriptorOrPath
from sim.disk.calls.raw_file import Calls, Opener, RawFile

FileObject = RawFile | io.BufferedReader | io.BufferedWriter | io.BufferedRandom | io.TextIOWrapper

# CPython 3.11 takes st_blksize, which is 4,096 on the file systems that we model.
BUFFER_BYTES: Final = BLOCK_BYTES


def open_file(  # noqa: PLR0913, PLR0917 - as in io.open
    handle: Calls,
    file: FileDescriptorOrPath,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Opener | None = None,
) -> FileObject:
    """Open ``file`` as ``io.open`` does. Text is UTF-8 where no encoding is given.

    Raises ``ValueError`` for modes that do not fit together, ``OSError`` as ``open(2)``.
    """
    _check_mode(mode)
    is_binary = "b" in mode
    if is_binary:
        _check_binary(encoding=encoding, errors=errors, newline=newline)
    elif buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    raw = RawFile(handle, file, mode, closefd=closefd, opener=opener)
    if buffering == 0:
        return raw
    try:
        buffer = _buffered(raw, BUFFER_BYTES if buffering in {-1, 1} else buffering)
        if is_binary:
            return buffer
        text = io.TextIOWrapper(
            buffer, encoding or "utf-8", errors, newline, line_buffering=buffering == 1
        )
    except BaseException:
        raw.close()
        raise
    vars(text)["mode"] = mode
    return text


def _buffered(
    raw: RawFile, size_bytes: int
) -> io.BufferedReader | io.BufferedWriter | io.BufferedRandom:
    if not raw.writable():
        return io.BufferedReader(raw, size_bytes)
    if not raw.readable():
        return io.BufferedWriter(raw, size_bytes)
    return io.BufferedRandom(raw, size_bytes)


def _check_mode(mode: str) -> None:
    if set(mode) - set("rwxabt+") or len(set(mode)) != len(mode):
        raise ValueError(f"invalid mode: {mode!r}")
    if "b" in mode and "t" in mode:
        raise ValueError("can't have text and binary mode at once")
    if len(set(mode) & set("rwxa")) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")


def _check_binary(**unwanted: str | None) -> None:
    for name, value in unwanted.items():
        if value is not None:
            article = "an" if name[0] in "aeiou" else "a"
            raise ValueError(f"binary mode doesn't take {article} {name} argument")
