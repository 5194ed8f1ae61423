"""Random system calls, one rule for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from stat import S_ISDIR
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.conformance.arms import Arm, file_system_type
from tests.conformance.outcome import EXPLICIT_NS, neutral
from tests.conformance.random_values import (
    ARITIES,
    DATA,
    DESCRIPTORS,
    DESCRIPTORS_MAX,
    FLAGS,
    MODES,
    ODD,
    OFFSETS,
    PATHS,
    SIMPLE,
    SIZES,
    RandomPath,
)

SEEKS_LIKE_EXT4 = ("ext4", "tmpfs")


class RandomCalls(RuleBasedStateMachine):
    """The calls of ``os``; a subclass compares the arms, or an arm with itself."""

    arms: Sequence[Arm]
    tops: Sequence[int]
    seeks: bool

    def begin(self, *arms: Arm) -> None:
        """Start with one open descriptor in each arm, that of the directory at the top."""
        self.arms = arms
        self.tops = [arm.os.open(arm.top, os.O_RDONLY) for arm in arms]
        self.seeks = all(
            arm.is_simulated or file_system_type(arm.top) in SEEKS_LIKE_EXT4 for arm in arms
        )
        # In the order of opening; each is one descriptor for every arm.
        self.descriptors: list[Sequence[int]] = []

    def populate(self) -> None:
        """Make a directory, a link and files: in an empty directory most calls fail with ENOENT."""
        self.mkdir(RandomPath("d", 0), 0o755)
        self.symlink(RandomPath("d", 0), RandomPath("c", 0))
        for name, options in (("d/a", 0), ("b", os.O_APPEND), ("a", 0)):
            self.open(RandomPath(name, 0), os.O_RDWR | os.O_CREAT | options, 0o644)
            self.write(0, name.encode() * 2000)

    # -- driving the arms ----------------------------------------------------------------

    def both(self, call: Callable[[Arm, int], Any]) -> Any:
        """Make the same call in every arm; return the outcome of the simulated one."""
        raise NotImplementedError

    def opened(self, call: Callable[[Arm, int], int]) -> None:
        """Make a call that returns a descriptor, and append that to the open ones."""
        found: list[int] = []

        def opening(arm: Arm, index: int) -> str:
            found.append(call(arm, index))
            return "a descriptor"

        if self.both(opening) == "a descriptor":
            self.descriptors.append(found)

    def pick(self, choice: int) -> Sequence[int]:
        """Return a descriptor for every arm; 0 is the last that was opened."""
        if not self.descriptors:
            return self.tops
        return self.descriptors[-1 - choice % len(self.descriptors)]

    def where(self, arm: Arm, index: int, path: RandomPath) -> tuple[str, int | None]:
        """Return the path and the ``dir_fd`` of a path in one arm."""
        if path.descriptor is None:
            return f"{arm.top}/{path.text}", None
        if path.descriptor == 0:
            return path.text, self.tops[index]
        return path.text, self.pick(path.descriptor - 1)[index]

    def at(self, name: str, path: RandomPath, *arguments: Any, **named: Any) -> Any:
        """Make the call ``name`` on a path."""

        def call(arm: Arm, index: int) -> Any:
            text, dir_fd = self.where(arm, index, path)
            return getattr(arm.os, name)(text, *arguments, dir_fd=dir_fd, **named)

        return self.both(call)

    def on(self, name: str, choice: int, *arguments: Any) -> Any:
        """Make the call ``name`` on a descriptor."""
        found = self.pick(choice)
        return self.both(lambda arm, index: getattr(arm.os, name)(found[index], *arguments))

    # -- descriptors -------------------------------------------------------------------

    @precondition(lambda self: len(self.descriptors) < DESCRIPTORS_MAX)
    @rule(path=PATHS, flags=FLAGS, mode=MODES)
    def open(self, path: RandomPath, flags: int, mode: int) -> None:
        def call(arm: Arm, index: int) -> int:
            text, dir_fd = self.where(arm, index, path)
            return int(arm.os.open(text, flags, mode, dir_fd=dir_fd))

        self.opened(call)

    @precondition(lambda self: len(self.descriptors) < DESCRIPTORS_MAX)
    @rule(path=PATHS)
    def open_to_write(self, path: RandomPath) -> None:
        self.open(path, os.O_RDWR | os.O_CREAT, 0o644)

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
        # Use after close: no other file can have taken the number yet.
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
            # Allocated and unwritten blocks are holes or data, depending on the page cache.
            self.seeks = False

    @rule(choice=DESCRIPTORS, name=st.sampled_from(SIMPLE))
    def simple(self, choice: int, name: str) -> None:
        self.on(name, choice)

    @precondition(lambda self: bool(self.descriptors))
    @rule(choice=DESCRIPTORS, other=DESCRIPTORS, inheritable=st.booleans())
    def dup2(self, choice: int, other: int, inheritable: bool) -> None:
        found, replaced = self.pick(choice), self.pick(other)

        def call(arm: Arm, index: int) -> bool:
            new: int = arm.os.dup2(found[index], replaced[index], inheritable)
            return new == replaced[index]

        self.both(call)

    @rule(
        choice=DESCRIPTORS,
        name=st.sampled_from(["set_inheritable", "set_blocking"]),
        flag=st.sampled_from([False, True, 0, 2]),
    )
    def set_flag(self, choice: int, name: str, flag: int) -> None:
        self.on(name, choice, flag)

    @rule(choice=DESCRIPTORS, offset=OFFSETS, length=OFFSETS, advice=st.integers(-1, 6))
    def posix_fadvise(self, choice: int, offset: int, length: int, advice: int) -> None:
        self.on("posix_fadvise", choice, offset, length, advice)

    @rule(
        choice=DESCRIPTORS,
        call=st.sampled_from(ARITIES),
        odd=st.lists(ODD, min_size=3, max_size=3),
    )
    def odd_arguments(self, choice: int, call: tuple[str, int], odd: list[object]) -> None:
        name, arity = call
        if not (name == "lseek" and self.is_directory(choice)):
            self.on(name, choice, *odd[:arity])

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
        fstat = self.arms[0].os.fstat
        if os.path.samestat(fstat(found[0]), fstat(to_found[0])):
            # Overlapping ranges are undefined: Linux sends pages, not bytes.
            return
        self.both(lambda arm, index: arm.os.sendfile(to_found[index], found[index], start, count))

    # -- names -------------------------------------------------------------------------

    @rule(path=PATHS, mode=MODES)
    def mkdir(self, path: RandomPath, mode: int) -> None:
        self.at("mkdir", path, mode)

    @rule(path=PATHS)
    def rmdir(self, path: RandomPath) -> None:
        self.at("rmdir", path)

    @rule(path=PATHS)
    def unlink(self, path: RandomPath) -> None:
        self.at("unlink", path)

    @rule(path=PATHS, to_path=PATHS)
    def rename(self, path: RandomPath, to_path: RandomPath) -> None:
        self.two("rename", path, to_path)

    @rule(path=PATHS, to_path=PATHS)
    def replace(self, path: RandomPath, to_path: RandomPath) -> None:
        self.two("replace", path, to_path)

    @rule(path=PATHS, to_path=PATHS, follow=st.booleans())
    def link(self, path: RandomPath, to_path: RandomPath, follow: bool) -> None:
        self.two("link", path, to_path, follow_symlinks=follow)

    def two(self, name: str, path: RandomPath, to_path: RandomPath, **named: Any) -> None:
        def call(arm: Arm, index: int) -> Any:
            text, dir_fd = self.where(arm, index, path)
            to_text, to_dir_fd = self.where(arm, index, to_path)
            return getattr(arm.os, name)(
                text, to_text, src_dir_fd=dir_fd, dst_dir_fd=to_dir_fd, **named
            )

        self.both(call)

    @rule(points_to=PATHS, path=PATHS)
    def symlink(self, points_to: RandomPath, path: RandomPath) -> None:
        def call(arm: Arm, index: int) -> Any:
            text, dir_fd = self.where(arm, index, path)
            is_absolute = points_to.descriptor is None
            link_text = f"{arm.top}/{points_to.text}" if is_absolute else points_to.text
            return arm.os.symlink(link_text, text, dir_fd=dir_fd)

        self.both(call)

    # -- attributes and listings -------------------------------------------------------

    @rule(path=PATHS, name=st.sampled_from(["stat", "lstat", "readlink"]))
    def stat(self, path: RandomPath, name: str) -> None:
        self.at(name, path)

    @rule(path=PATHS, mode=st.integers(0, 7), follow=st.booleans())
    def access(self, path: RandomPath, mode: int, follow: bool) -> None:
        self.at("access", path, mode, follow_symlinks=follow, effective_ids=True)

    @rule(path=PATHS, mode=MODES)
    def chmod(self, path: RandomPath, mode: int) -> None:
        self.at("chmod", path, mode)

    @rule(choice=DESCRIPTORS, mode=MODES)
    def fchmod(self, choice: int, mode: int) -> None:
        self.on("fchmod", choice, mode)

    @rule(path=PATHS, owner=st.sampled_from([-1, 0, 1, 65534]), follow=st.booleans())
    def chown(self, path: RandomPath, owner: int, follow: bool) -> None:
        self.at("chown", path, owner, owner, follow_symlinks=follow)

    @rule(path=PATHS, seconds=st.one_of(st.none(), st.integers(0, 9)), follow=st.booleans())
    def utime(self, path: RandomPath, seconds: int | None, follow: bool) -> None:
        if seconds is None:
            self.at("utime", path, follow_symlinks=follow)
        else:
            moment = EXPLICIT_NS - 10**18 + seconds
            self.at("utime", path, ns=(moment, moment), follow_symlinks=follow)

    @rule(path=PATHS, length=OFFSETS)
    def truncate(self, path: RandomPath, length: int) -> None:
        def call(arm: Arm, _index: int) -> Any:
            return arm.os.truncate(f"{arm.top}/{path.text}", length)

        self.both(call)

    @rule(path=PATHS)
    def listdir(self, path: RandomPath) -> None:
        self.both(lambda arm, _index: arm.os.listdir(f"{arm.top}/{path.text}"))

    @rule(choice=DESCRIPTORS)
    def listdir_of_descriptor(self, choice: int) -> None:
        self.on("listdir", choice)

    @rule(path=PATHS)
    def scandir(self, path: RandomPath) -> None:
        def call(arm: Arm, _index: int) -> Any:
            with arm.os.scandir(f"{arm.top}/{path.text}") as entries:
                return [
                    [entry.name, neutral(arm, entry.path), str(entry.is_symlink())]
                    for entry in entries
                ]

        self.both(call)

    @rule(choice=DESCRIPTORS, operation=st.sampled_from([1, 2, 8]))
    def flock(self, choice: int, operation: int) -> None:
        found = self.pick(choice)
        self.both(lambda arm, index: arm.fcntl.flock(found[index], operation | 4))

    # -- queries -------------------------------------------------------------------------

    def is_directory(self, choice: int) -> bool:
        """Return whether a descriptor refers to a directory."""
        status = self.arms[0].os.fstat(self.pick(choice)[0])
        return S_ISDIR(status.st_mode)
