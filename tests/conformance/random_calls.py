"""Random system calls, one rule for each, over few names and descriptors so that they meet."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.conformance.arms import Arm, file_system_type
from tests.conformance.outcome import EXPLICIT_NS, neutral

SEEKS_LIKE_EXT4 = ("ext4", "tmpfs")
DESCRIPTORS_MAX = 8


@dataclass(frozen=True)
class Place:
    """A path: below the top by absolute path, or below an open directory by ``dir_fd``.

    ``descriptor`` counts the open descriptors from the youngest, 0 being the directory at
    the top; None makes the path absolute.
    """

    text: str
    descriptor: int | None

    def __repr__(self) -> str:
        return f"Place({self.text!r}, {self.descriptor})"


def places() -> st.SearchStrategy[Place]:
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
    return st.builds(Place, text, st.sampled_from([0, 0, None, None, None, 1, 2]))


PLACES = places()
DESCRIPTORS = st.integers(0, DESCRIPTORS_MAX - 1)
SIZES = st.sampled_from([0, 1, 3, 100, 4095, 4096, 4097, 9000])
OFFSETS = st.sampled_from([0, 1, 5, 4095, 4096, 5000, 8192, 12_000, 1 << 20, -1])
# Without setuid and setgid: a write by anybody but root takes them off, which is not modelled.
MODES = st.sampled_from([0o777, 0o644, 0o600, 0o500, 0o300, 0o000, 0o1777, 0o755])
DATA = st.builds(
    lambda size, letter: letter * size, SIZES, st.sampled_from([b"A", b"B", b"C", b"\0"])
)
OPTIONS = (
    os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW,
    os.O_SYNC, os.O_DSYNC, os.O_TMPFILE, os.O_CLOEXEC,
)  # fmt: skip
FLAGS = st.builds(
    lambda access, options: reduce(or_, options, access),
    st.sampled_from([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR]),
    st.lists(st.sampled_from(OPTIONS), max_size=3, unique=True),
)


class RandomCalls(RuleBasedStateMachine):
    """Every call of the handle; a machine that stands on it says what they are compared with."""

    arms: Sequence[Arm]
    tops: Sequence[int]
    seeks: bool

    def begin(self, *arms: Arm) -> None:
        """Start with nothing open in the arms but the directory at the top."""
        self.arms = arms
        self.tops = [arm.os.open(arm.top, os.O_RDONLY) for arm in arms]
        self.seeks = all(
            arm.is_simulated or file_system_type(arm.top) in SEEKS_LIKE_EXT4 for arm in arms
        )
        # The youngest last; each is one descriptor for every arm.
        self.descriptors: list[Sequence[int]] = []

    def populate(self) -> None:
        """Make a few things to begin with: in an empty directory most calls find nothing."""
        self.mkdir(Place("d", 0), 0o755)
        self.symlink(Place("d", 0), Place("c", 0))
        for name, options in (("d/a", 0), ("b", os.O_APPEND), ("a", 0)):
            self.open(Place(name, 0), os.O_RDWR | os.O_CREAT | options, 0o644)
            self.write(0, name.encode() * 2000)

    # -- driving the arms ----------------------------------------------------------------

    def both(self, call: Callable[[Arm, int], Any]) -> Any:
        """Make the same call in every arm; return what the simulated one returned."""
        raise NotImplementedError

    def opened(self, call: Callable[[Arm, int], int]) -> None:
        """Make a call that returns a descriptor, and keep what it returned."""
        found: list[int] = []

        def opening(arm: Arm, index: int) -> str:
            found.append(call(arm, index))
            return "a descriptor"

        if self.both(opening) == "a descriptor":
            self.descriptors.append(found)

    def pick(self, choice: int) -> Sequence[int]:
        """Return a descriptor for every arm; 0 is the youngest."""
        if not self.descriptors:
            return self.tops
        return self.descriptors[-1 - choice % len(self.descriptors)]

    def where(self, arm: Arm, index: int, place: Place) -> tuple[str, int | None]:
        """Return the path and the ``dir_fd`` of a place in one arm."""
        if place.descriptor is None:
            return f"{arm.top}/{place.text}", None
        if place.descriptor == 0:
            return place.text, self.tops[index]
        return place.text, self.pick(place.descriptor - 1)[index]

    def at(self, name: str, place: Place, *arguments: Any, **named: Any) -> Any:
        """Make the call ``name`` on a place."""

        def call(arm: Arm, index: int) -> Any:
            path, dir_fd = self.where(arm, index, place)
            return getattr(arm.os, name)(path, *arguments, dir_fd=dir_fd, **named)

        return self.both(call)

    def on(self, name: str, choice: int, *arguments: Any) -> Any:
        """Make the call ``name`` on a descriptor."""
        found = self.pick(choice)
        return self.both(lambda arm, index: getattr(arm.os, name)(found[index], *arguments))

    # -- descriptors -------------------------------------------------------------------

    @precondition(lambda self: len(self.descriptors) < DESCRIPTORS_MAX)
    @rule(place=PLACES, flags=FLAGS, mode=MODES)
    def open(self, place: Place, flags: int, mode: int) -> None:
        def call(arm: Arm, index: int) -> int:
            path, dir_fd = self.where(arm, index, place)
            return int(arm.os.open(path, flags, mode, dir_fd=dir_fd))

        self.opened(call)

    @precondition(lambda self: len(self.descriptors) < DESCRIPTORS_MAX)
    @rule(place=PLACES)
    def open_to_write(self, place: Place) -> None:
        self.open(place, os.O_RDWR | os.O_CREAT, 0o644)

    @precondition(lambda self: 0 < len(self.descriptors) < DESCRIPTORS_MAX)
    @rule(choice=DESCRIPTORS)
    def dup(self, choice: int) -> None:
        found = self.pick(choice)
        self.opened(lambda arm, index: int(arm.os.dup(found[index])))

    @precondition(lambda self: bool(self.descriptors))
    @rule(choice=DESCRIPTORS)
    def close(self, choice: int) -> None:
        found = self.descriptors.pop(-1 - choice % len(self.descriptors))
        self.both(lambda arm, index: arm.os.close(found[index]))
        # A descriptor that is used after it was closed; nothing else can have taken it.
        self.both(lambda arm, index: arm.os.fsync(found[index]))

    @rule(choice=DESCRIPTORS, length=st.one_of(SIZES, st.just(-1)))
    def read(self, choice: int, length: int) -> None:
        self.on("read", choice, length)

    @rule(choice=DESCRIPTORS, length=SIZES, offset=OFFSETS)
    def pread(self, choice: int, length: int, offset: int) -> None:
        self.on("pread", choice, length, offset)

    @rule(choice=DESCRIPTORS, data=DATA)
    def write(self, choice: int, data: bytes) -> None:
        self.on("write", choice, data)

    @rule(choice=DESCRIPTORS, data=DATA, offset=OFFSETS)
    def pwrite(self, choice: int, data: bytes, offset: int) -> None:
        self.on("pwrite", choice, data, offset)

    @rule(choice=DESCRIPTORS, pieces=st.lists(DATA, max_size=3))
    def writev(self, choice: int, pieces: list[bytes]) -> None:
        self.on("writev", choice, pieces)

    @rule(choice=DESCRIPTORS, sizes=st.lists(SIZES, max_size=3))
    def readv(self, choice: int, sizes: list[int]) -> None:
        found = self.pick(choice)

        def call(arm: Arm, index: int) -> Any:
            buffers = [bytearray(size) for size in sizes]
            return [b"%d" % arm.os.readv(found[index], buffers), *map(bytes, buffers)]

        self.both(call)

    @rule(choice=DESCRIPTORS, position=OFFSETS, how=st.integers(0, 5))
    def lseek(self, choice: int, position: int, how: int) -> None:
        if how in {os.SEEK_DATA, os.SEEK_HOLE} and not self.seeks:
            return
        if self.is_directory(choice):
            position, how = 0, os.SEEK_SET
        self.on("lseek", choice, position, how)

    @rule(choice=DESCRIPTORS, length=OFFSETS)
    def ftruncate(self, choice: int, length: int) -> None:
        self.on("ftruncate", choice, length)

    @rule(choice=DESCRIPTORS, offset=OFFSETS, length=OFFSETS)
    def posix_fallocate(self, choice: int, offset: int, length: int) -> None:
        if self.on("posix_fallocate", choice, offset, length) is None:
            # What is allocated and unwritten is a hole or not, as the page cache has it.
            self.seeks = False

    @rule(choice=DESCRIPTORS, name=st.sampled_from(["fsync", "fdatasync", "fstat"]))
    def simple(self, choice: int, name: str) -> None:
        self.on(name, choice)

    @rule(
        source=DESCRIPTORS,
        sink=DESCRIPTORS,
        count=SIZES,
        start=st.one_of(st.none(), OFFSETS),
        to_start=st.one_of(st.none(), OFFSETS),
    )
    def copy_file_range(
        self, source: int, sink: int, count: int, start: int | None, to_start: int | None
    ) -> None:
        found, to_found = self.pick(source), self.pick(sink)
        self.both(
            lambda arm, index: arm.os.copy_file_range(
                found[index], to_found[index], count, start, to_start
            )
        )

    @rule(source=DESCRIPTORS, sink=DESCRIPTORS, count=SIZES, start=st.one_of(st.none(), OFFSETS))
    def sendfile(self, source: int, sink: int, count: int, start: int | None) -> None:
        found, to_found = self.pick(source), self.pick(sink)
        looks = self.arms[0].os
        if os.path.samestat(looks.fstat(found[0]), looks.fstat(to_found[0])):
            # What overlaps is undefined: Linux sends pages, not bytes.
            return
        self.both(lambda arm, index: arm.os.sendfile(to_found[index], found[index], start, count))

    # -- names -------------------------------------------------------------------------

    @rule(place=PLACES, mode=MODES)
    def mkdir(self, place: Place, mode: int) -> None:
        self.at("mkdir", place, mode)

    @rule(place=PLACES)
    def rmdir(self, place: Place) -> None:
        self.at("rmdir", place)

    @rule(place=PLACES)
    def unlink(self, place: Place) -> None:
        self.at("unlink", place)

    @rule(place=PLACES, to_place=PLACES)
    def rename(self, place: Place, to_place: Place) -> None:
        self.two("rename", place, to_place)

    @rule(place=PLACES, to_place=PLACES)
    def replace(self, place: Place, to_place: Place) -> None:
        self.two("replace", place, to_place)

    @rule(place=PLACES, to_place=PLACES, follow=st.booleans())
    def link(self, place: Place, to_place: Place, follow: bool) -> None:
        self.two("link", place, to_place, follow_symlinks=follow)

    def two(self, name: str, place: Place, to_place: Place, **named: Any) -> None:
        def call(arm: Arm, index: int) -> Any:
            path, dir_fd = self.where(arm, index, place)
            to_path, to_dir_fd = self.where(arm, index, to_place)
            return getattr(arm.os, name)(
                path, to_path, src_dir_fd=dir_fd, dst_dir_fd=to_dir_fd, **named
            )

        self.both(call)

    @rule(points_to=PLACES, place=PLACES)
    def symlink(self, points_to: Place, place: Place) -> None:
        def call(arm: Arm, index: int) -> Any:
            path, dir_fd = self.where(arm, index, place)
            text = f"{arm.top}/{points_to.text}" if points_to.descriptor is None else points_to.text
            return arm.os.symlink(text, path, dir_fd=dir_fd)

        self.both(call)

    # -- attributes and looks ----------------------------------------------------------

    @rule(place=PLACES, name=st.sampled_from(["stat", "lstat", "readlink"]))
    def look(self, place: Place, name: str) -> None:
        self.at(name, place)

    @rule(place=PLACES, mode=st.integers(0, 7), follow=st.booleans())
    def access(self, place: Place, mode: int, follow: bool) -> None:
        self.at("access", place, mode, follow_symlinks=follow, effective_ids=True)

    @rule(place=PLACES, mode=MODES)
    def chmod(self, place: Place, mode: int) -> None:
        self.at("chmod", place, mode)

    @rule(choice=DESCRIPTORS, mode=MODES)
    def fchmod(self, choice: int, mode: int) -> None:
        self.on("fchmod", choice, mode)

    @rule(place=PLACES, owner=st.sampled_from([-1, 0, 1, 65534]), follow=st.booleans())
    def chown(self, place: Place, owner: int, follow: bool) -> None:
        self.at("chown", place, owner, owner, follow_symlinks=follow)

    @rule(place=PLACES, seconds=st.one_of(st.none(), st.integers(0, 9)), follow=st.booleans())
    def utime(self, place: Place, seconds: int | None, follow: bool) -> None:
        if seconds is None:
            self.at("utime", place, follow_symlinks=follow)
        else:
            moment = EXPLICIT_NS - 10**18 + seconds
            self.at("utime", place, ns=(moment, moment), follow_symlinks=follow)

    @rule(place=PLACES, length=OFFSETS)
    def truncate(self, place: Place, length: int) -> None:
        def call(arm: Arm, _index: int) -> Any:
            return arm.os.truncate(f"{arm.top}/{place.text}", length)

        self.both(call)

    @rule(place=PLACES)
    def listdir(self, place: Place) -> None:
        self.both(lambda arm, _index: arm.os.listdir(f"{arm.top}/{place.text}"))

    @rule(choice=DESCRIPTORS)
    def listdir_of_descriptor(self, choice: int) -> None:
        self.on("listdir", choice)

    @rule(place=PLACES)
    def scandir(self, place: Place) -> None:
        def call(arm: Arm, _index: int) -> Any:
            with arm.os.scandir(f"{arm.top}/{place.text}") as entries:
                return [
                    [entry.name, neutral(arm, entry.path), str(entry.is_symlink())]
                    for entry in entries
                ]

        self.both(call)

    @rule(choice=DESCRIPTORS, operation=st.sampled_from([1, 2, 8]))
    def flock(self, choice: int, operation: int) -> None:
        found = self.pick(choice)
        self.both(lambda arm, index: arm.fcntl.flock(found[index], operation | 4))

    # -- looking -------------------------------------------------------------------------

    def is_directory(self, choice: int) -> bool:
        """Say whether a descriptor is one of a directory."""
        status = self.arms[0].os.fstat(self.pick(choice)[0])
        return stat.S_ISDIR(status.st_mode)
