"""Random arguments of system calls: names and descriptors are few, so that calls meet."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import reduce
from operator import or_

from hypothesis import strategies as st

DESCRIPTORS_MAX = 8


@dataclass(frozen=True)
class RandomPath:
    """A path: below the top by absolute path, or below an open directory by ``dir_fd``.

    ``descriptor`` counts the open descriptors from the last on, 0 being the directory at
    the top; None makes the path absolute.
    """

    text: str
    descriptor: int | None

    def __repr__(self) -> str:
        return f"RandomPath({self.text!r}, {self.descriptor})"


def random_paths() -> st.SearchStrategy[RandomPath]:
    """Draw short paths over few names, so that calls meet."""
    name = st.sampled_from(["a", "b", "c", "d", "a", "b", "c", "d", "a", "d", ".", "..", "é"])
    long = st.sampled_from(["x" * 255, "x" * 256, "é" * 128])
    component = st.one_of(name, name, name, name, name, name, name, long)
    text = st.builds(
        lambda names, separator, end: separator.join(names) + end,
        st.lists(component, min_size=1, max_size=3),
        st.sampled_from(["/", "/", "/", "//"]),
        st.sampled_from(["", "", "", "", "", "/", "/."]),
    )
    near = st.sampled_from(["a", "b", "c", "d", "d/a", "c/a", "d/b"])
    text = st.one_of(near, near, near, text, text, text, st.just(""))
    return st.builds(RandomPath, text, st.sampled_from([0, 0, None, None, None, 1, 2]))


PATHS = random_paths()
DESCRIPTORS = st.integers(0, DESCRIPTORS_MAX - 1)
SIZES = st.sampled_from([0, 1, 3, 100, 4095, 4096, 4097, 9000])
OFFSETS = st.sampled_from([0, 1, 5, 4095, 4096, 5000, 8192, 12_000, 1 << 20, -1])
MODES = st.sampled_from(
    [0o777, 0o644, 0o600, 0o500, 0o300, 0o000, 0o1777, 0o755, 0o2777, 0o2766, 0o6755, 0o4644]
)
DATA = st.builds(
    lambda size, letter: letter * size, SIZES, st.sampled_from([b"A", b"B", b"C", b"\0"])
)
SIMPLE = [
    "fsync", "fdatasync", "fstat", "get_inheritable", "get_blocking", "isatty", "listxattr",
]  # fmt: skip
ARITIES = [
    ("read", 1), ("pread", 2), ("write", 1), ("pwrite", 2), ("lseek", 2), ("ftruncate", 1),
    ("posix_fallocate", 2), ("posix_fadvise", 3), ("fchmod", 1), ("fchown", 2), ("utime", 1),
    ("set_inheritable", 1), ("set_blocking", 1), ("readv", 1), ("writev", 1), ("truncate", 1),
]  # fmt: skip
# No large number that fits: files of many gigabytes would be read at the end of a run.
ODD = st.sampled_from([None, 1.5, "x", b"xy", [], True, 0, 7, -1, 1 << 64, (1, 2), [b"x"]])
OPTIONS = (
    os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW,
    os.O_SYNC, os.O_DSYNC, os.O_TMPFILE, os.O_CLOEXEC, os.O_NONBLOCK,
)  # fmt: skip
FLAGS = st.builds(
    lambda access, options: reduce(or_, options, access),
    st.sampled_from([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR]),
    st.lists(st.sampled_from(OPTIONS), max_size=3, unique=True),
)
