"""``open``: modes, buffers, text, and what errors look like."""

from __future__ import annotations

import copy
import errno
import gc
import io
import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sim.disk.calls.interpreter import MODE_OF_WB_PLUS
from tests.conformance.arms import Arm
from tests.conformance.calls import content, fails, put
from tests.conformance.outcome import outcome


@pytest.mark.parametrize("mode", ["r", "w", "x", "a", "r+", "w+", "x+", "a+"])
def test_a_mode_reads_writes_and_starts_where_it_says(arm: Arm, mode: str) -> None:
    path = arm.path("a")
    if "x" not in mode:
        put(arm, "a", b"content")
    with arm.open(path, mode + "b", 0) as file:
        start = file.tell()
        abilities = file.readable(), file.writable(), file.seekable()
        shown = file.mode
        if file.writable():
            file.write(b"NEW")
    letter = mode[0]
    expected = {"r": b"NEWtent", "w": b"NEW", "x": b"NEW", "a": b"contentNEW"}[letter]
    assert content(arm, path) == (b"content" if mode == "r" else expected)
    assert start == (7 if letter == "a" else 0)
    assert abilities == ("+" in mode or letter == "r", mode != "r", True)
    assert shown == {"w+": MODE_OF_WB_PLUS}.get(mode, letter + "b" + mode[1:])


@pytest.mark.parametrize(
    ("mode", "raw_mode", "kind"),
    [
        ("rb", "rb", io.BufferedReader), ("wb", "wb", io.BufferedWriter),
        ("r+b", "rb+", io.BufferedRandom), ("w", "wb", io.TextIOWrapper),
        ("rt", "rb", io.TextIOWrapper),
    ],
)  # fmt: skip
def test_the_kinds_of_file_objects(arm: Arm, mode: str, raw_mode: str, kind: type[Any]) -> None:
    path = put(arm, "a")
    with arm.open(path, mode) as file:
        raw = file.buffer.raw if kind is io.TextIOWrapper else file.raw
        assert (type(file), file.name, raw.mode, raw.closefd) == (kind, path, raw_mode, True)
        assert not file.isatty()
        if kind is io.TextIOWrapper:
            assert file.mode == mode
    assert file.closed
    assert raw.closed


def test_what_is_written_reaches_the_file_when_the_buffer_is_flushed(arm: Arm) -> None:
    with arm.open(arm.path("a"), "wb") as file:
        file.write(b"one")
        before = content(arm, arm.path("a"))
        file.flush()
        after = content(arm, arm.path("a"))
        file.write(b"two")
    assert (before, after, content(arm, arm.path("a"))) == (b"", b"one", b"onetwo")


def test_the_size_of_the_buffer_decides_when_it_overflows(arm: Arm) -> None:
    for buffering, expected in ((16, 16), (-1, 0), (100, 0)):
        with arm.open(arm.path("a"), "wb", buffering) as file:
            file.write(b"x" * 16)
            file.write(b"y")
            assert arm.os.stat(arm.path("a")).st_size == expected, buffering


def test_line_buffering_flushes_at_every_line(arm: Arm) -> None:
    with arm.open(arm.path("a"), "w", 1) as file:
        file.write("one\ntwo")
        assert content(arm, arm.path("a")) == b"one\ntwo"
        file.write("three")
        assert content(arm, arm.path("a")) == b"one\ntwo"


def test_text_is_encoded_and_lines_end_as_asked(arm: Arm) -> None:
    with arm.open(arm.path("a"), "w", encoding="utf-8", newline="\r\n") as file:
        file.write("é\nz\n")
    assert content(arm, arm.path("a")) == "é\r\nz\r\n".encode()
    with arm.open(arm.path("a"), encoding="utf-8") as file:
        assert list(file) == ["é\n", "z\n"]
    with arm.open(arm.path("a"), encoding="ascii", errors="replace", newline="") as file:
        assert file.readline() == "\ufffd\ufffd\r\n"


def test_reading_and_writing_may_alternate(arm: Arm) -> None:
    put(arm, "a", b"0123456789" * 1000)
    with arm.open(arm.path("a"), "r+b") as file:
        assert file.read(3) == b"012"
        file.write(b"XYZ")
        assert file.read(2) == b"67"
        file.seek(-4, os.SEEK_END)
        assert file.read() == b"6789"
        file.seek(5000)
        file.truncate()
        assert file.seek(0, os.SEEK_END) == file.truncate(5000) == 5000
    assert content(arm, arm.path("a"))[:10] == b"012XYZ6789"


def test_readinto_and_readall_work_without_a_buffer(arm: Arm) -> None:
    with arm.open(put(arm, "a", b"content"), "rb", 0) as file:
        buffer = bytearray(3)
        assert (file.readinto(buffer), bytes(buffer)) == (3, b"con")
        assert (file.read(2), file.read(), file.read()) == (b"te", b"nt", b"")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("q",), "invalid mode: 'q'"), (("rr",), "invalid mode: 'rr'"),
        (("rw",), "must have exactly one of create/read/write/append mode"),
        (("rbt",), "can't have text and binary mode at once"),
        (("r", 0), "can't have unbuffered text I/O"),
        (("rb", -1, "utf-8"), "binary mode doesn't take an encoding argument"),
        (("rb", -1, None, "strict"), "binary mode doesn't take an errors argument"),
        (("rb", -1, None, None, ""), "binary mode doesn't take a newline argument"),
        (("r", -1, None, None, "x"), "illegal newline value: x"),
        (("r", -1, None, None, None, False), "Cannot use closefd=False with file name"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_together(
    arm: Arm, arguments: tuple[Any, ...], message: str
) -> None:
    path = put(arm, "a")
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(") + "$"):
        arm.open(path, *arguments)


def test_errors_name_the_file(arm: Arm) -> None:
    for name, number in (("missing", errno.ENOENT), ("", errno.EISDIR), ("f/a", errno.ENOTDIR)):
        put(arm, "f")
        assert fails(number, arm.open, arm.path(name)).filename == arm.path(name)
    fails(errno.EEXIST, arm.open, arm.path("f"), "x")
    with pytest.raises(LookupError, match="unknown encoding"):
        arm.open(arm.path("f"), encoding="no such codec")


class Index:
    """An integer that is no ``int``."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


PATH = object()
"""Stands for the path of a file."""


@pytest.mark.parametrize(
    "arguments",
    [
        (None,), (1.5,), ([],), (-1,), (1 << 40,), (Index(-5),), (bytearray(b"a"),), ("a\0b",),
        (b"a\0b",), (PATH, 5), (PATH, None), (PATH, b"r"), (PATH, ""), (PATH, "b"), (PATH, "+"),
        (PATH, "U"), (PATH, "rU"), (PATH, "r", "x"), (PATH, "r", 1.5), (PATH, "r", None),
        (PATH, "r", -7), (PATH, "rb", -7), (PATH, "rb", 1), (PATH, "r", Index(16)),
        (PATH, "rb", 1 << 70), (PATH, "w", 0), (PATH, "r", -1, 5),
        (PATH, "r", -1, None, 5), (PATH, "r", -1, None, "x"), (PATH, "r", -1, None, None, 5),
        (PATH, "r", -1, None, None, None, 1.5), (PATH, "r", -1, None, None, None, True, 5),
        (PATH, "r", -1, None, None, None, True, lambda name, flags: "x"),
        (PATH, "r", -1, None, None, None, True, lambda name, flags: None),
    ],
)  # fmt: skip
def test_odd_arguments_of_open_are_those_of_cpython(
    both: tuple[Arm, Arm], arguments: tuple[Any, ...]
) -> None:
    def opened(arm: Arm) -> Any:
        path = put(arm, "a", b"content")
        with arm.open(*(path if item is PATH else item for item in arguments)) as file:
            return str(file.read())

    actual, expected = (outcome(arm, partial(opened, arm)) for arm in both)
    assert actual == expected


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("seek", 1.5), ("seek", "1"), ("seek", 1 << 64), ("seek", Index(3)), ("seek", -1),
        ("read", 1.5), ("read", Index(2)), ("read", None), ("read", -5), ("read", "1"),
        ("write", "text"), ("write", 5), ("write", memoryview(b"abcd")[::2]),
        ("write", memoryview(b"abcdefgh").cast("I")), ("readinto", b"xx"), ("readinto", "text"),
        ("readinto", memoryview(bytearray(4))[::2]), ("readinto", bytearray(3)),
        ("truncate", 1.5), ("truncate", -1), ("truncate", None), ("truncate", 1 << 64),
        ("writelines", [b"a", bytearray(b"b")]), ("writelines", ["a"]),
    ],
)  # fmt: skip
def test_odd_arguments_of_raw_files_are_those_of_cpython(
    both: tuple[Arm, Arm], name: str, argument: Any
) -> None:
    def called(arm: Arm) -> Any:
        with arm.open(put(arm, "a", b"content"), "r+b", 0) as file:
            result = getattr(file, name)(argument)
            return result, file.tell(), file.isatty(), content(arm, arm.path("a"))

    actual, expected = (outcome(arm, partial(called, arm)) for arm in both)
    assert actual == expected


def _type_neutral(text: str) -> str:
    return text.replace("_io.FileIO", "RawFile").replace("'FileIO'", "'RawFile'")


@pytest.mark.parametrize(("mode", "buffering"), [("rb", 0), ("rb", -1), ("r+b", -1), ("r", -1)])
def test_a_file_object_shows_its_name_and_mode_and_cannot_be_pickled(
    both: tuple[Arm, Arm], mode: str, buffering: int
) -> None:
    found = []
    for arm in both:
        file = arm.open(put(arm, "a"), mode, buffering)
        errors = []
        for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError) as caught:
                duplicate(file)
            errors.append(str(caught.value))
        shown = _type_neutral(repr(file)).replace(arm.top, "<top>")
        file.close()
        found.append((shown, _type_neutral(repr(file)).replace(arm.top, "<top>"), errors))
    assert found[0] == found[1]


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_missing_attribute_is_refused_as_by_cpython(
    both: tuple[Arm, Arm], buffering: int
) -> None:
    errors = []
    for arm in both:
        with arm.open(put(arm, "a"), "rb", buffering) as file:
            with pytest.raises(AttributeError) as caught:
                _ = file.sise
            assert (caught.value.name, caught.value.obj) == ("sise", file)
            errors.append(str(caught.value))
            assert not hasattr(file, "sise")
            assert getattr(file, "sise", 3) == 3
    assert errors[0] == errors[1]


def test_a_file_whose_flush_fails_is_closed(arm: Arm) -> None:
    file = arm.open(put(arm, "a"), "wb", 0)
    descriptor = file.fileno()

    def flush() -> None:
        assert not file.closed
        raise RuntimeError("flush")

    file.flush = flush
    with pytest.raises(RuntimeError, match="flush"):
        file.close()
    assert file.closed
    fails(errno.EBADF, arm.os.fstat, descriptor)
    file.close()


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    "argument",
    ["x", 3, None, b"x", memoryview(b"abcd")[::2], bytearray(b"x")],
    ids=["str", "int", "None", "bytes", "strided", "bytearray"],
)
@pytest.mark.parametrize(("mode", "call"), [("rb", "write"), ("wb", "readinto")])
def test_an_argument_is_judged_before_the_mode_of_a_raw_file(
    both: tuple[Arm, Arm], mode: str, call: str, argument: object, closed: bool
) -> None:
    found = []
    for arm in both:
        with arm.open(put(arm, "a"), mode, 0) as file:
            if closed:
                file.close()
            found.append(outcome(arm, partial(getattr(file, call), argument)))
    assert found[0] == found[1]


def test_a_buffer_is_as_long_as_that_of_cpython(both: tuple[Arm, Arm]) -> None:
    found = []
    for arm in both:
        with arm.open(arm.path("a"), "wb") as file:
            for length in (4096, 1, 120_000, 9000):
                file.write(bytes(length))
                found.append(arm.os.stat(arm.path("a")).st_size)
    assert found[:4] == found[4:]


@pytest.mark.parametrize(("mode", "buffering"), [("rb", 0), ("wb", 0), ("rb", -1), ("w", -1)])
def test_a_file_object_that_is_dropped_unclosed_warns(arm: Arm, mode: str, buffering: int) -> None:
    path = put(arm, "a")
    file = arm.open(path, mode, buffering)
    shown = repr(file)
    with pytest.warns(ResourceWarning) as caught:
        del file
    assert [(str(warning.message), warning.filename) for warning in caught] == [
        (f"unclosed file {shown}", __file__)
    ]


def test_a_file_object_over_a_lent_descriptor_is_dropped_silently(arm: Arm) -> None:
    descriptor = arm.os.open(put(arm, "a"), os.O_RDONLY)
    arm.open(descriptor, "rb", closefd=False)
    gc.collect()
    arm.os.close(descriptor)


def test_the_buffer_has_the_size_of_a_block_and_text_the_encoding_of_the_locale(arm: Arm) -> None:
    with arm.open(put(arm, "a"), "rb", 0) as raw:
        assert raw._blksize == arm.os.fstat(raw.fileno()).st_blksize
    with arm.open(arm.path("a")) as text, open(os.devnull) as real_text:
        assert text.encoding == real_text.encoding


def test_a_closed_file_answers_nothing(arm: Arm) -> None:
    file = arm.open(put(arm, "a"), "rb", 0)
    file.close()
    file.close()
    for call in (file.read, file.readable, file.writable, file.seekable, file.tell, file.fileno):
        with pytest.raises(ValueError, match="closed file"):
            call()


def test_a_file_does_only_what_its_mode_says(arm: Arm) -> None:
    path = put(arm, "a")
    with arm.open(path, "rb", 0) as reader, arm.open(path, "ab", 0) as writer:
        for call, argument in ((reader.write, b"x"), (reader.truncate, 0), (writer.read, 1)):
            with pytest.raises(io.UnsupportedOperation):
                call(argument)
        with pytest.raises(io.UnsupportedOperation):
            writer.readinto(bytearray(1))
        fails(errno.EINVAL, reader.seek, -1)


def test_a_descriptor_can_be_lent_and_given(arm: Arm) -> None:
    descriptor = arm.os.open(put(arm, "a", b"content"), os.O_RDONLY)
    with arm.open(descriptor, "rb", closefd=False) as file:
        assert (file.read(3), file.fileno(), file.name) == (b"con", descriptor, descriptor)
    with arm.os.fdopen(descriptor, "rb") as file:
        assert file.read() == b""
    fails(errno.EBADF, arm.os.close, descriptor)
    assert fails(errno.EBADF, arm.open, descriptor).filename is None
    directory = arm.os.open(arm.top, os.O_RDONLY)
    fails(errno.EISDIR, arm.open, directory)
    arm.os.close(directory)
    with pytest.raises(TypeError):
        arm.os.fdopen(arm.path("a"))


def test_the_descriptor_decides_whether_readall_is_possible(arm: Arm) -> None:
    path = put(arm, "a", b"content" * 3000)
    with arm.open(arm.os.open(path, os.O_RDWR), "wb", 0) as file:
        assert file.readall() == b"content" * 3000
        assert file.readall() == b""
    with pytest.raises(ValueError, match="closed"):
        file.readall()
    with arm.open(path, "wb", 0) as file:
        assert fails(errno.EBADF, file.readall).filename is None
        for size in (-1, 0, 5):
            with pytest.raises(io.UnsupportedOperation, match="not open for reading"):
                file.read(size)
    with arm.open(path, "ab") as file:
        fails(errno.EBADF, file.raw.readall)


def test_an_opener_opens_instead(arm: Arm) -> None:
    put(arm, "a", b"content")
    directory = arm.os.open(arm.top, os.O_RDONLY)

    def beside(name: str, flags: int) -> int:
        return int(arm.os.open(name, flags, dir_fd=directory))

    with arm.open("a", "rb", opener=beside) as file:
        assert file.read() == b"content"
    with pytest.raises(ValueError, match="opener returned -1"):
        arm.open("a", opener=lambda _name, _flags: -1)
    arm.os.close(directory)


def test_fsync_takes_a_file_object_and_open_a_path_object(arm: Arm) -> None:
    with arm.open(Path(arm.path("a")), "wb") as file:
        file.write(b"content")
        file.flush()
        arm.os.fsync(file)
        arm.os.fdatasync(file)
