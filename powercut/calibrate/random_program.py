"""Random programs of file calls on a few names, most of which succeed.

Every write of a program has a letter of its own, so that its bytes are recognized in an outcome:
small letters in the set-up, capital letters in the calls. ``S`` fills the free blocks of a new
file system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, cycle
from typing import Final, TypeVar

from powercut.calibrate.names import Names
from powercut.calibrate.program import Call
from powercut.calibrate.row import Program
from sim.choices import Choices, SeededChoices

T = TypeVar("T")

FILES: Final = ("f", "g", "h", "d/f", "d/g", "e/f", "e/g", "d/s/f")
DIRECTORIES: Final = ("d", "e", "d/s", "e/s")
LINKS: Final = ("l", "d/l", "e/l")

_FEWEST_CALLS: Final = 3
_MOST_CALLS: Final = 8
_ATTEMPTS: Final = 200
_MOST_DESCRIPTORS: Final = 2
# Around the sizes of sectors and blocks. A number that is repeated is more likely.
_OFFSETS: Final = (0, 0, 0, 1, 100, 510, 2000, 4094, 4096, 4096, 6000, 8192, 12288)
_LENGTHS: Final = (1, 13, 100, 512, 1000, 2500, 4096, 4096, 5000, 8192, 12288)
_SIZES: Final = (0, 0, 1, 10, 100, 512, 2509, 4095, 4096, 5000, 8192, 9000, 12288)

# With the sticky bit: an outcome shows only modes that have it.
_MODES: Final = (0o1755, 0o1700, 0o1770)

_SETUP_DIRECTORIES: Final = {"d": 60, "e": 60, "d/s": 15}
_SETUP_FILES: Final = {"f": 55, "g": 55, "d/f": 55}
_OTHER_SETUP_FILE: Final = 15
_SETUP_LINK: Final = 12
_BACKGROUND: Final = 16
"""Chances in percent."""

_ENDS: Final = {"nothing": 1, "commit": 4, "logsync": 1, "syncfs": 2, "flush": 3}
_BACKGROUND_WORK: Final = {"commit": 4, "logsync": 1, "flush": 3, "part": 1, "syncfs": 1, "tick": 2}


def random_program(seed: int) -> Program:
    """Return the program of ``seed``: the same on every machine."""
    return _Draft(SeededChoices(seed)).program()


class _Draft:
    """A program in the making, with the names that exist after its last call."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._names = Names()
        self._setup: list[Call] = []
        self._calls: list[Call] = []
        self._labels: list[str] = []
        self._letters: Iterator[str] = cycle("BCDEFGHIJKLMNOPQRTUVWXYZ")
        self._seconds = count(1)
        self._weights: Mapping[Callable[[], Call | None], int] = {
            self._creat: 4,
            self._write: 14,
            self._append: 9,
            self._otrunc: 6,
            self._trunc: 7,
            self._falloc: 3,
            self._fsync: 13,
            self._fdatasync: 5,
            self._fsync_directory: 5,
            self._sync: 1,
            self._rename: 14,
            self._rename_directory: 3,
            self._link: 5,
            self._unlink: 6,
            self._symlink: 2,
            self._mkdir: 5,
            self._rmdir: 2,
            self._open: 6,
            self._tmpfile: 3,
            self._descriptor_call: 12,
            self._chmod: 3,
            self._utime: 2,
            self._fdatasync_directory: 1,
        }

    def program(self) -> Program:
        """Draw the whole program."""
        self._draw_setup()
        wanted = self._choices.integer("calls", _FEWEST_CALLS, _MOST_CALLS)
        for _ in range(_ATTEMPTS):
            if sum(call[0] != "bg" for call in self._calls) == wanted:
                break
            call = self._weighted(self._weights)()
            if call is None:
                continue
            self._names.apply(call)
            self._calls.append(call)
            if self._happens(_BACKGROUND):
                self._calls.append(self._background())
        self._draw_end()
        return Program(tuple(self._setup), tuple(self._calls))

    def _draw_setup(self) -> None:
        letters = iter("abcdefghijk")
        for name, percent in _SETUP_DIRECTORIES.items():
            if self._names.can_create(name) and self._happens(percent):
                self._set_up(["mkdir", name])
        for name in FILES:
            percent = _SETUP_FILES.get(name, _OTHER_SETUP_FILE)
            if self._names.can_create(name) and self._happens(percent):
                self._set_up(["write", name, 0, self._pick(_SIZES[2:]), next(letters)])
        free = self._names.free(FILES)
        if self._names.files() and free and self._happens(_SETUP_LINK):
            self._set_up(["link", self._pick(self._names.files()), self._pick(free)])

    def _set_up(self, call: Call) -> None:
        self._names.apply(call)
        self._setup.append(call)

    def _draw_end(self) -> None:
        match self._weighted(_ENDS):
            case "nothing":
                pass
            case "flush":
                if self._names.files():
                    self._calls.append(["bg", "flush", self._a_file()])
                self._calls.append(["bg", "commit"])
            case work:
                self._calls.append(["bg", work])

    def _background(self) -> Call:
        work = self._weighted(_BACKGROUND_WORK)
        if work not in {"flush", "part"}:
            return ["bg", work]
        if not self._names.files():
            return ["bg", "commit"]
        if work == "flush":
            return ["bg", "flush", self._a_file()]
        return ["bg", "part", self._a_file(), self._pick((0, 4096, 8192)), 4096]

    # The calls; None if none of the kind is possible.

    def _creat(self) -> Call | None:
        free = self._names.free(FILES)
        return ["creat", self._pick(free)] if free else None

    def _write(self) -> Call:
        return ["write", self._file_or_new(), self._offset(), self._length(), next(self._letters)]

    def _append(self) -> Call | None:
        if not self._names.files():
            return None
        return ["append", self._a_file(), self._length(), next(self._letters)]

    def _otrunc(self) -> Call:
        length = self._pick((0, *_LENGTHS))
        return ["otrunc", self._file_or_new(), length, next(self._letters)]

    def _trunc(self) -> Call | None:
        return ["trunc", self._a_file(), self._pick(_SIZES)] if self._names.files() else None

    def _falloc(self) -> Call | None:
        if not self._names.files():
            return None
        return ["falloc", self._a_file(), self._offset(), self._length()]

    def _fsync(self) -> Call | None:
        return ["fsync", self._a_file()] if self._names.files() else None

    def _fdatasync(self) -> Call | None:
        return ["fdatasync", self._a_file()] if self._names.files() else None

    def _fdatasync_directory(self) -> Call:
        return ["fdatasync", self._pick(["", *self._names.directories()])]

    def _fsync_directory(self) -> Call:
        return ["fsync", self._pick(["", *self._names.directories()])]

    def _sync(self) -> Call | None:
        return ["sync"] if self._calls else None

    def _rename(self) -> Call | None:
        if not self._names.files():
            return None
        old = self._a_file()
        targets = [name for name in self._names.files() if name != old] + self._names.free(FILES)
        return ["rename", old, self._pick(targets)] if targets else None

    def _rename_directory(self) -> Call | None:
        if not self._names.directories():
            return None
        old, new = self._pick(self._names.directories()), self._pick(DIRECTORIES)
        return ["rename", old, new] if self._names.can_move_directory(old, new) else None

    def _link(self) -> Call | None:
        free = self._names.free(FILES)
        if not (self._names.files() and free):
            return None
        return ["link", self._a_file(), self._pick(free)]

    def _unlink(self) -> Call | None:
        return ["unlink", self._a_file()] if self._names.files() else None

    def _symlink(self) -> Call | None:
        free = self._names.free(LINKS)
        return ["symlink", self._pick(FILES), self._pick(free)] if free else None

    def _mkdir(self) -> Call | None:
        free = self._names.free(DIRECTORIES)
        return ["mkdir", self._pick(free)] if free else None

    def _rmdir(self) -> Call | None:
        empty = [name for name in self._names.directories() if not self._names.below(name)]
        return ["rmdir", self._pick(empty)] if empty else None

    def _open(self) -> Call | None:
        if len(self._labels) == _MOST_DESCRIPTORS:
            return None
        path, flags = self._file_or_new(), self._pick(("", "c", "c", "t", "a"))
        if path not in self._names.files():
            flags = {"c": "c", "t": "tc"}.get(flags, "")
            if not flags:
                return None
        self._labels.append(f"h{len(self._labels) + 1}")
        return ["open", self._labels[-1], path, flags + self._pick(("", "", "", "d", "s"))]

    def _tmpfile(self) -> Call | None:
        if len(self._labels) == _MOST_DESCRIPTORS:
            return None
        self._labels.append(f"h{len(self._labels) + 1}")
        return ["tmpfile", self._labels[-1], self._pick(["", *self._names.directories()])]

    def _chmod(self) -> Call | None:
        names = self._names.files() + self._names.directories()
        return ["chmod", self._pick(names), self._pick(_MODES)] if names else None

    def _utime(self) -> Call | None:
        names = self._names.files() + self._names.directories()
        return ["utime", self._pick(names), next(self._seconds)] if names else None

    def _descriptor_call(self) -> Call | None:
        if not self._labels:
            return None
        label = self._pick(self._labels)
        names = "hwrite", "hwrite", "hwrite", "htrunc", "hfalloc", "hfsync", "hfdatasync", "hlink"
        match self._pick(names):
            case "hwrite":
                return ["hwrite", label, self._offset(), self._length(), next(self._letters)]
            case "htrunc":
                return ["htrunc", label, self._pick(_SIZES)]
            case "hfalloc":
                return ["hfalloc", label, self._offset(), self._length()]
            case "hlink":
                free = self._names.free(FILES)
                return ["hlink", label, self._pick(free)] if free else None
            case sync:
                return [sync, label]

    # Choices.

    def _a_file(self) -> str:
        return self._pick(self._names.files())

    def _file_or_new(self) -> str:
        return self._pick(self._names.files() + self._names.free(FILES)[:3] or list(FILES))

    def _offset(self) -> int:
        return self._pick(_OFFSETS)

    def _length(self) -> int:
        return self._pick(_LENGTHS)

    def _happens(self, percent: int) -> bool:
        return self._choices.integer("happens", 0, 99) >= 100 - percent

    def _weighted(self, weights: Mapping[T, int]) -> T:
        point = self._choices.integer("weighted", 0, sum(weights.values()) - 1)
        for option, weight in weights.items():
            point -= weight
            if point < 0:
                return option
        raise AssertionError

    def _pick(self, options: Sequence[T]) -> T:
        return self._choices.pick("pick", options)
