"""Checks of images: by a command of the user, or by the files that were acknowledged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from typing import Final, NamedTuple, Protocol

from oracles.history import Known
from oracles.old_or_new import OldOrNew
from oracles.violation import CheckFailed, Violation
from powercut.fuse.command_check import CheckPlace
from powercut.fuse.disk_mount import MountWay
from powercut.fuse.recording import Recording
from sim.disk.cache.inode import BLOCK_BYTES, Inode, block_key
from sim.disk.cache.key import content_key
from sim.disk.cache.operation import Rename
from sim.disk.crash.image import Image
from sim.disk.disk import Disk

Files = dict[str, bytes]
"""Contents by path, as ``file_content`` or ``link_content`` returns them."""

TIMEOUT_S: Final = 10.0
_CONTENT: Final = Struct("<QQ")
_KEY_BITS: Final = 64


class Checked(NamedTuple):
    """The result of one check.

    ``is_flaky``: it failed once and passed once. ``is_endless``: it did not end in its time.
    """

    violation: Violation | None
    is_flaky: bool = False
    is_endless: bool = False


class Checks(Protocol):
    """The checks of one process, one after the other."""

    def check(self, image: Image, entries: int) -> Checked:
        """Check an image that a crash left after ``entries`` acknowledgements."""
        ...


class ImageCheck(Protocol):
    """A check, which is used by several processes at once."""

    def begin(self, folder: str) -> Checks:
        """Prepare this process, which does nothing else; ``folder`` is for temporary files."""
        ...


class CommandCheck(NamedTuple):
    """A shell command that ends with exit status 0 if all acknowledged data is there.

    A check that fails is run a second time.
    """

    command: str
    timeout_s: float
    recording: Recording
    way: MountWay

    def begin(self, folder: str) -> Checks:
        return _Commands(self, CheckPlace(self.recording.mount_point, self.way, folder))


class _Commands:
    def __init__(self, check: CommandCheck, place: CheckPlace) -> None:
        self._check = check
        self._place = place

    def check(self, image: Image, entries: int) -> Checked:
        command, timeout_s, recording, _ = self._check
        lines = [text for _, text in recording.acknowledgements[:entries]]
        first = self._place.run(command, image, lines, timeout_s)
        if first.passed:
            return Checked(None)
        second = self._place.run(command, image, lines, timeout_s)
        if second.passed:
            return Checked(None, is_flaky=True)
        failure = CheckFailed(f"the check fails, {first}", acknowledged=lines)
        return Checked(failure, is_endless=second.exit_status is None)


class LongContent(bytes):
    """Stands for a content of more than a block: its size and a hash.

    A recording may have thousands of states of one large file, and a sparse file may be larger
    than the memory.
    """

    __slots__ = ()

    def __str__(self) -> str:
        size, key = _CONTENT.unpack(self)
        return f"{size} bytes, hash {key:016x}"


def file_content(size: int, blocks: Mapping[int, bytes]) -> bytes:
    """Return what is compared of a file, given its blocks; a block that is missing is zeros."""
    if size <= BLOCK_BYTES:
        return _short_content(size, blocks)
    return _long_content(size, sum(block_key(*block) for block in blocks.items()))


def _short_content(size: int, blocks: Mapping[int, bytes]) -> bytes:
    return blocks.get(0, b"")[:size].ljust(size, b"\0")


def _long_content(size: int, key: int) -> LongContent:
    return LongContent(_CONTENT.pack(size, key % (1 << _KEY_BITS)))


def link_content(text: str) -> bytes:
    """Return what is compared of a symbolic link that holds the path ``text``."""
    return b"symbolic link to " + os.fsencode(text)


class FilesCheck:
    """Checks that every file, and every symbolic link, is old or new.

    One that exists at the last acknowledgement before the crash, or at the first one after it,
    must have its content of one of these moments, or a content that was renamed to its path
    between them. Others do not matter: they are temporary files, whole or in part.
    """

    def __init__(self, recording: Recording) -> None:
        moments = [after for after, _ in recording.acknowledgements]
        self._states = list(_states(recording, moments))
        self._renamed = list(_renamed(recording, moments))

    def begin(self, folder: str) -> Checks:
        del folder
        return self

    def check(self, image: Image, entries: int) -> Checked:
        return Checked(self.violation(_contents(image), entries))

    def violation(self, found: Files, entries: int) -> Violation | None:
        """Compare the files ``found`` with the states around acknowledgement ``entries``."""
        old = self._states[entries]
        new = self._states[min(entries + 1, len(self._states) - 1)]
        between = self._renamed[entries]
        for path in sorted(old.keys() | new.keys()):
            actual = found.get(path)
            allowed = (old.get(path), new.get(path), *between.get(path, ()))
            if actual not in allowed:
                return self._violation(path, actual, entries)
        return None

    def _violation(self, path: str, actual: bytes | None, entries: int) -> Violation:
        initial, *acknowledged = [{path: state.get(path)} for state in self._states]
        known = Known(tuple(acknowledged[:entries]), tuple(acknowledged[entries : entries + 1]))
        try:
            OldOrNew(initial)({path: actual}, known)
        except Violation as violation:
            evidence = {name: _abbreviated(value) for name, value in violation.evidence.items()}
            return type(violation)(violation.statement, **evidence)
        raise AssertionError(f"{path} is old or new")


def _contents(image: Image) -> Files:
    found = ((path, _content(inode)) for path, inode in image.tree())
    return {path: content for path, content in found if content is not None}


def _content(inode: Inode) -> bytes | None:
    if inode.link_text:
        return link_content(inode.link_text)
    if not inode.is_file:
        return None
    if inode.size <= BLOCK_BYTES:
        return _short_content(inode.size, inode.blocks)
    return _long_content(inode.size, content_key(inode))


def _abbreviated(value: object) -> object:
    """Return a value of the evidence, with the lengths of contents that are long."""
    match value:
        case dict():
            return {path: _abbreviated(content) for path, content in value.items()}
        case list():
            return [*map(_abbreviated, value)]
        case LongContent():
            return str(value)
        case _:
            return value


def _states(recording: Recording, moments: Sequence[int]) -> Iterator[Files]:
    """Yield the files at the start, and at each moment: a number of operations."""
    journal = recording.journal
    yield _contents(journal.image)
    disk, done = Disk(journal.image), 0
    for moment in moments:
        for operation in journal[done:moment]:
            operation.apply(disk.cache)
        done = moment
        yield _contents(Image.of_platter(disk.cache.view(), disk.next_inode))


def _renamed(recording: Recording, moments: Sequence[int]) -> Iterator[dict[str, list[bytes]]]:
    """Yield the contents that renames gave to paths, from each moment to the next."""
    journal = recording.journal
    disk, done = Disk(journal.image), 0
    for moment in (*moments, len(journal)):
        contents: dict[str, list[bytes]] = {}
        for operation in journal[done:moment]:
            operation.apply(disk.cache)
            if isinstance(operation, Rename):
                content = _content(disk.inode(operation.inode))
                if content is not None:
                    contents.setdefault(operation.to_path, []).append(content)
        done = moment
        yield contents
