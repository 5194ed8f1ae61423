"""The lifetimes of one run: their disks, the lines of the program, and its calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from faults.crash_point import CrashKind, CrashPoint
from powercut.place import Place, Stack, code_of
from powercut.place_recorder import PlaceRecorder
from sim.disk.disk import Disk


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One lifetime. ``places`` are the lines of the program for the numbers of its operations."""

    disk: Disk
    places: dict[int, Place]


@dataclass(slots=True)
class Call:
    """A call of an action or of a recovery, in step ``step`` of the run, from 0.

    ``after`` is the number of crashes of this step before it, ``lifetime`` the place of its
    lifetime in the run, ``start`` the number of operations of this lifetime before it. ``end`` is
    the number of operations at its return, None if a crash has ended it. Its effects must survive
    every crash after its return. ``place`` is the line that returned, None for a function that is
    not written in Python.
    """

    text: str
    step: int
    after: int
    lifetime: int
    start: int
    end: int | None = None
    place: Place | None = None


class LifetimeRecorder:
    """Records the lifetimes of one run, and the calls of its actions and recoveries.

    ``power_cuts`` has for each power cut the index in ``boots`` of the lifetime that it ended, and
    its crash point. ``adapters`` are source files that make the calls of the disk for the program.
    """

    def __init__(self, adapters: Collection[str]) -> None:
        self.boots: list[Lifetime] = []
        self.calls: list[Call] = []
        self.power_cuts: list[tuple[int, CrashPoint]] = []
        self._killed: set[int] = set()
        self._step = -1
        self._crashes = 0
        self._adapters = adapters
        self._stack = Stack(adapters)

    def begin_step(self) -> None:
        """Count the next step of the run."""
        self._step, self._crashes = self._step + 1, 0

    def begin(self, disk: Disk) -> None:
        """Record the lifetime that begins on ``disk``."""
        self.boots.append(Lifetime(disk, PlaceRecorder(disk, self._adapters).places))

    def crash(self, point: CrashPoint) -> None:
        """Record that the current lifetime has ended in a crash."""
        last = len(self.boots) - 1
        self._crashes += 1
        if point.kind is CrashKind.KILL:
            self._killed.add(last)
        else:
            self.power_cuts.append((last, point))

    @contextmanager
    def calling(self, text: str, function: Callable[..., object]) -> Iterator[None]:
        """Record the call of ``function`` in the block."""
        last = len(self.boots) - 1
        disk = self.boots[last].disk
        call = Call(text, self._step, self._crashes, last, disk.operations)
        self.calls.append(call)
        code = code_of(function)

        def observe(frame: FrameType, event: str, _argument: object) -> None:
            if event == "return" and frame.f_code is code:
                call.place = self._stack.place(frame)

        before: Any = sys.getprofile()
        sys.setprofile(observe)
        try:
            yield
        finally:
            if before is None or callable(before):
                sys.setprofile(before)
            else:
                before.enable()  # cProfile, up to Python 3.11
        if not disk.off:
            call.end = disk.operations

    def since_power_cut(self, last: int) -> range:
        """Return the places of the lifetimes up to ``last`` that follow each other by kills.

        When the first one began, everything was durable.
        """
        first = last
        while self.boots[first].disk.image.unsynced or first - 1 in self._killed:
            first -= 1
        return range(first, last + 1)

    def before(self, lifetime: int) -> int:
        """Return the number of operations since the power cut, or the start, before a lifetime."""
        earlier = self.since_power_cut(lifetime)[:-1]
        return sum(len(self.boots[place].disk.journal) for place in earlier)

    @property
    def places(self) -> Mapping[int, Place]:
        """The lines of the current lifetime; those of killed ones before it are below 1."""
        current = len(self.boots) - 1
        shift = self.before(current)
        return {
            number + self.before(lifetime) - shift: place
            for lifetime in self.since_power_cut(current)
            for number, place in self.boots[lifetime].places.items()
        }
