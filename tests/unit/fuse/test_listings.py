"""Names of a directory keep their positions while others come and go."""

from __future__ import annotations

import os
import stat

from powercut.fuse.listings import Listings
from powercut.fuse.messages import DIRENT, READ_IN, Request
from sim.disk.calls.process import Process
from sim.disk.disk import Disk


class Directory:
    """Reads the root of a disk, a few names at a time."""

    def __init__(self, *names: str) -> None:
        self.process = Process(Disk())
        for name in names:
            self.add(name)
        self._listings = Listings(self.process.disk.cache.own)

    def add(self, name: str) -> None:
        self.process.close(self.process.open(f"/{name}", os.O_CREAT))

    def read(self, position: int = 0, most: int = 100) -> list[tuple[str, int]]:
        """The names behind a position, at most so many, each with its own position."""
        body = memoryview(READ_IN.pack(0, position, most * 32))
        data = self._listings.read(Request(1, 0, 0, 0, body))
        found, at = [], 0
        while at < len(data):
            _, after, length, kind = DIRENT.unpack_from(data, at)
            at += DIRENT.size
            assert kind in {stat.S_IFDIR >> 12, stat.S_IFREG >> 12}
            found.append((data[at : at + length].decode(), after))
            at += -(-length // 8) * 8
        return found


def names(found: list[tuple[str, int]]) -> list[str]:
    return [name for name, _ in found]


def test_first_listing_is_sorted() -> None:
    assert names(Directory("c", "a", "b").read()) == [".", "..", "a", "b", "c"]


def test_listing_continues_behind_a_position_of_any_name() -> None:
    directory = Directory("a", "b", "c")
    for name, position in directory.read():
        behind = names(directory.read(position))
        assert [*names(directory.read())[: -len(behind) or None], *behind] == names(
            directory.read()
        )
        assert name not in behind


def test_removal_of_the_names_that_were_read_skips_none() -> None:
    """So ``rm -r`` works that reads a few names, removes them, and reads on."""
    directory = Directory(*(f"n{number:02}" for number in range(20)))
    removed: list[str] = []
    position = 0
    while found := directory.read(position, most=4):
        for name in set(names(found)) - {".", ".."}:
            directory.process.unlink(f"/{name}")
            removed.append(name)
        position = found[-1][1]
    assert sorted(removed) == [f"n{number:02}" for number in range(20)]


def test_new_name_comes_last_and_is_met_once() -> None:
    directory = Directory("b", "c")
    first = directory.read(most=3)
    directory.add("a")
    assert names(first + directory.read(first[-1][1])) == [".", "..", "b", "c", "a"]


def test_name_that_is_made_anew_has_a_new_position() -> None:
    directory = Directory("a", "b")
    old = dict(directory.read())
    directory.process.unlink("/a")
    directory.read()
    directory.add("a")
    assert dict(directory.read())["a"] > max(old.values())
