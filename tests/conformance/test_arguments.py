"""Odd arguments of every call: both arms return the same, or raise the same error.

Each parameter in turn gets every odd value of its kind, while the others keep a good one.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any

import pytest

from tests.conformance.arms import Arm
from tests.conformance.calls import put
from tests.conformance.outcome import outcome

CLOSED = 1 << 30
"""A descriptor that is open in neither arm."""


@dataclass(frozen=True)
class Index:
    """An integer that is no ``int``."""

    value: int

    def __index__(self) -> int:
        return self.value


@dataclass(frozen=True)
class File:
    """An object with a descriptor."""

    descriptor: Any

    def fileno(self) -> Any:
        return self.descriptor


@dataclass(frozen=True)
class Path:
    """An object with a path."""

    path: Any

    def __fspath__(self) -> Any:
        return self.path


class Text(str):
    __slots__ = ()


class Prepared:
    """A fresh file ``a`` and its descriptor, a link ``l`` to it, and one of the top directory."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        with suppress(FileNotFoundError):
            arm.os.unlink(arm.path("new"))
        with suppress(OSError):
            arm.os.rmdir(arm.path("new"))
        with suppress(FileExistsError):
            arm.os.symlink("a", arm.path("l"))
        put(arm, "a", b"content")
        self.fd = arm.os.open(arm.path("a"), os.O_RDWR)
        self.top_fd = arm.os.open(arm.top, os.O_RDONLY)

    def close(self) -> None:
        for descriptor in (self.fd, self.top_fd, self.fd + 40):
            with suppress(OSError):
                self.arm.os.close(descriptor)


Value = Callable[[Prepared], Any]


def _constant(value: object, _prepared: Prepared) -> object:
    return value


def _same(*values: object) -> list[Value]:
    return [partial(_constant, value) for value in values]


PATHS: list[Value] = [
    *_same(None, 1.5, [], {}, "", b"", "a\0b", b"a\0b", "\ud800", "x" * 5000, "x" * 300),
    *_same(bytearray(b"a"), memoryview(b"a"), Path(5), Path(b"missing"), Path("missing")),
    *_same("missing", b"missing", Text("missing"), object),
    lambda prepared: Path(prepared.arm.path("a")),
    lambda prepared: Text(prepared.arm.path("a")),
    lambda prepared: os.fsencode(prepared.arm.path("a")),
    lambda prepared: Path(os.fsencode(prepared.arm.path("a"))),
]
NUMBERS = _same(None, 1.5, "1", b"1", [], 1 << 31, 1 << 64, -(1 << 31) - 1, -(1 << 64))
DESCRIPTORS: list[Value] = [
    *NUMBERS, *_same(-1, -7, CLOSED, Index(CLOSED), Index(-1), 1j),
    lambda prepared: Index(prepared.fd), lambda prepared: float(prepared.fd),
    lambda prepared: File(prepared.fd),
]  # fmt: skip
ODD: dict[str, list[Value]] = {
    "path": [*PATHS, *_same(5, -1, Index(5))],
    "path or descriptor": [*PATHS, *DESCRIPTORS],
    # The C library reads address 0 for a negative one.
    "path or open descriptor": [
        *PATHS, *_same(CLOSED, Index(CLOSED), 1.5, 1 << 31), lambda prepared: Index(prepared.fd),
    ],
    "descriptor": DESCRIPTORS,
    "file": [*DESCRIPTORS, *_same(File(CLOSED), File(-1), File("x"), File(1 << 40), File(1.5))],
    "new descriptor": [*NUMBERS, *_same(-1, 1 << 40), lambda prepared: prepared.fd],
    "boundary": [*NUMBERS, lambda prepared: Index(prepared.fd + 41)],
    "int": [*NUMBERS, *_same(-1, Index(0), Index(1 << 40), 0.0)],
    "operation": [*NUMBERS, *_same(-1, 0, 64, Index(5), 5.0)],
    "flags": [*NUMBERS, *_same(Index(0), True, 0.0)],
    "offset": [*NUMBERS, *_same(-1, -9, Index(1), Index(1 << 70), 1 << 63, -(1 << 63) - 1, 2.0)],
    "length": [*NUMBERS[:5], *_same(-1, Index(1), Index(1 << 70), 1 << 64, 2.0)],
    "id": [
        *NUMBERS, *_same(-1, -2, Index(-1), (1 << 32) - 1, 1 << 32, (1 << 33) + 5, Index(1 << 40)),
    ],
    "directory": [
        *NUMBERS, *_same(-1, -5, -100, CLOSED, Index(CLOSED), "x"),
        lambda prepared: prepared.fd, lambda prepared: Index(prepared.top_fd),
        lambda prepared: float(prepared.top_fd),
    ],
    "truth": _same(0, 1, "", "x", None, [], 1.5),
    "data": _same(
        None, 5, "text", [], [1], bytearray(b"ab"), memoryview(b"abcd")[::2], b"",
        memoryview(b"abcd")[1:3], memoryview(memoryview(b"abcdefgh").cast("I")),
    ),
    "buffers": _same(
        None, 5, "", "text", {}, [None], ["x"], [b"x", 5], (), [b""], (bytearray(b"ab"),),
        [memoryview(b"abcd")[::2]], b"ab", [b""] * 1025,
    ),
    "buffer": _same(
        None, 5, "text", [], b"ab", bytearray(3), bytearray(), memoryview(bytearray(4))[::2],
        memoryview(bytearray(4))[1:3],
    ),
    "times": _same(
        [1, 2], (1,), (1, 2, 3), 5, "ab", (None, 1), ("1", 2), (1.5, 2), (Index(1), 2),
        (float("nan"), 1), (float("inf"), 1), (1e300, 1), (1 << 70, 1), (-(1 << 70), 1), (1j, 1),
        ([], 1), (Fraction(-7, 2), 1), (Decimal("1.0000000005"), 2), (Decimal("NaN"), 1),
    ),
    "ns": _same(
        None, [1, 2], (1,), (1, 2, 3), 5, (None, 1), (1.5, 2), (Index(1), 2), (1 << 100, 1),
        ("1", 2), (True, 2),
    ),
    "limit": _same(
        None, 1.5, [], "x", "PC_NAME_MAX", "PC_SYNC_IO", 3, 99, -1, 1 << 40, b"PC_NAME_MAX",
        Index(3),
    ),
}  # fmt: skip

GOOD: dict[str, Value] = {
    "path": lambda prepared: prepared.arm.path("a"),
    "path or descriptor": lambda prepared: prepared.arm.path("a"),
    "path or open descriptor": lambda prepared: prepared.arm.path("a"),
    "descriptor": lambda prepared: prepared.fd,
    "file": lambda prepared: prepared.fd,
    "new descriptor": lambda prepared: prepared.fd + 40,
    "boundary": lambda prepared: prepared.fd + 40,
    "int": lambda prepared: 0,
    "operation": lambda prepared: fcntl.LOCK_EX | fcntl.LOCK_NB,
    "flags": lambda prepared: os.O_CREAT,
    "offset": lambda prepared: 1,
    "length": lambda prepared: 3,
    "id": lambda prepared: -1,
    "directory": lambda prepared: prepared.top_fd,
    "truth": lambda prepared: True,
    "data": lambda prepared: b"xy",
    "buffers": lambda prepared: [bytearray(2)],
    "buffer": lambda prepared: bytearray(2),
    "times": lambda prepared: (1, 2),
    "ns": lambda prepared: (1, 2),
    "limit": lambda prepared: "PC_NAME_MAX",
}


@dataclass(frozen=True)
class Row:
    """The parameters of one call; ``named`` are given by keyword, and left out while not tried."""

    call: str
    kinds: tuple[str, ...]
    named: tuple[tuple[str, str], ...] = ()

    def arguments(self, prepared: Prepared, index: int, value: Value) -> tuple[list[Any], Any]:
        """Return the arguments with an odd value at ``index``."""
        places = [value if place == index else GOOD[kind] for place, kind in enumerate(self.kinds)]
        positional = [place(prepared) for place in places]
        name = self.named[index - len(self.kinds)][0] if index >= len(self.kinds) else ""
        return positional, {name: value(prepared)} if name else {}


def _row(call: str, *kinds: str, **named: str) -> Row:
    return Row(call, kinds, tuple(named.items()))


BOTH = {"dir_fd": "directory", "follow_symlinks": "truth"}
TWO = {"src_dir_fd": "directory", "dst_dir_fd": "directory"}
EITHER = "path or descriptor"
ROWS = [
    _row("fcntl.flock", "file", "operation"),
    _row("fcntl.lockf", "file", "operation", "offset", "offset", "int"),
    _row("access", "path", "int", effective_ids="truth", **BOTH),
    _row("chdir", EITHER),
    _row("chmod", EITHER, "int", **BOTH),
    _row("chown", EITHER, "id", "id", **BOTH),
    _row("close", "descriptor"),
    _row("closerange", "boundary", "boundary"),
    _row(
        "copy_file_range", "descriptor", "descriptor", "length",
        offset_src="offset", offset_dst="offset",
    ),
    _row("dup2", "descriptor", "new descriptor", inheritable="truth"),
    _row("fchdir", "file"),
    _row("fchmod", "descriptor", "int"),
    _row("fchown", "descriptor", "id", "id"),
    _row("fdatasync", "file"),
    _row("fpathconf", "descriptor", "limit"),
    _row("fstat", "descriptor"),
    _row("fstatvfs", "descriptor"),
    _row("fsync", "file"),
    _row("ftruncate", "descriptor", "offset"),
    _row("get_blocking", "descriptor"),
    _row("get_inheritable", "descriptor"),
    _row("isatty", "descriptor"),
    _row("lchown", "path", "id", "id"),
    _row("link", "path", "path", follow_symlinks="truth", **TWO),
    _row("listdir", EITHER),
    _row("listxattr", EITHER, follow_symlinks="truth"),
    _row("lockf", "descriptor", "int", "offset"),
    _row("lseek", "descriptor", "offset", "int"),
    _row("lstat", "path", dir_fd="directory"),
    _row("mkdir", "path", "int", dir_fd="directory"),
    _row("open", "path", "flags", "int", dir_fd="directory"),
    _row("pathconf", "path or open descriptor", "limit"),
    _row("posix_fadvise", "descriptor", "offset", "offset", "int"),
    _row("posix_fallocate", "descriptor", "offset", "length"),
    _row("pread", "descriptor", "length", "offset"),
    _row("preadv", "descriptor", "buffers", "offset"),
    _row("pwrite", "descriptor", "data", "offset"),
    _row("pwritev", "descriptor", "buffers", "offset"),
    _row("read", "descriptor", "length"),
    _row("readlink", "path", dir_fd="directory"),
    _row("readv", "descriptor", "buffers"),
    _row("remove", "path", dir_fd="directory"),
    _row("rename", "path", "path", **TWO),
    _row("replace", "path", "path", **TWO),
    _row("rmdir", "path", dir_fd="directory"),
    _row("scandir", EITHER),
    _row("sendfile", "descriptor", "descriptor", "offset", "length"),
    _row("set_blocking", "descriptor", "int"),
    _row("set_inheritable", "descriptor", "int"),
    _row("stat", EITHER, **BOTH),
    _row("statvfs", EITHER),
    _row("symlink", "path", "path", dir_fd="directory"),
    _row("truncate", EITHER, "offset"),
    _row("umask", "int"),
    _row("unlink", "path", dir_fd="directory"),
    _row("utime", EITHER, "times", ns="ns", **BOTH),
    _row("write", "descriptor", "data"),
    _row("writev", "descriptor", "buffers"),
]  # fmt: skip
if hasattr(os, "readinto"):
    ROWS.append(_row("readinto", "descriptor", "buffer"))


def _tried(arm: Arm, row: Row, index: int, value: Value) -> Any:
    prepared = Prepared(arm)
    positional, named = row.arguments(prepared, index, value)

    def call() -> Any:
        name = row.call if "." in row.call else f"os.{row.call}"
        result = attrgetter(name)(arm)(*positional, **named)
        if row.call == "open":
            arm.os.close(result)
            return "a descriptor"
        if row.call == "dup2":
            return result - prepared.fd
        if row.call == "scandir":
            return sorted(os.fsdecode(entry.path) for entry in result)
        return result if row.call not in {"statvfs", "fstatvfs"} else "limits"

    mask, directory = arm.os.umask(0o022), arm.os.getcwd()
    try:
        arm.os.chdir(arm.top)
        return _comparable(outcome(arm, call))
    finally:
        arm.os.chdir(directory)
        arm.os.umask(mask)
        prepared.close()


def _comparable(result: Any) -> Any:
    """Return an outcome with the types of objects whose values are those of one arm."""
    if not isinstance(result, tuple):
        return result
    return tuple(type(item) if isinstance(item, Index) else item for item in result)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.call)
def test_odd_arguments_are_converted_as_cpython_converts_them(
    both: tuple[Arm, Arm], row: Row
) -> None:
    kinds = [*row.kinds, *(kind for _, kind in row.named)]
    different = []
    for index, kind in enumerate(kinds):
        for value in ODD[kind]:
            actual, expected = (_tried(arm, row, index, value) for arm in both)
            if actual != expected:
                different.append(f"{index} {kind} simulated={actual!r} linux={expected!r}")
    assert not different, "\n" + "\n".join(different)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("preadv", (CLOSED, 5, "x")),
        ("preadv", (CLOSED, [b"x"], 0, 1 << 40)),
        ("pwritev", (CLOSED, ["x"], 1 << 70)),
        ("pwritev", (CLOSED, 5, 0, "x")),
        ("sendfile", (CLOSED, CLOSED, "x", [])),
    ],
)
def test_the_argument_that_cpython_converts_last_is_refused_last(
    both: tuple[Arm, Arm], call: str, arguments: tuple[object, ...]
) -> None:
    actual, expected = (outcome(arm, partial(getattr(arm.os, call), *arguments)) for arm in both)
    assert actual == expected
