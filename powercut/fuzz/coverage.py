"""Crash-point coverage: the places of a program that were crashed, and in which ways.

A **site** is one kind of operation, made at one place in the program, on behalf of its callers:
the ``write`` of an atomic write is the same line of code for a record and for a quarantine,
and two sites. Callers are followed from a worker back to the coroutine that queued the call.

A site that was met is covered when it was crashed in each phase of the operation, by a kill
and by a power cut. This module crashes nothing: its users report the sites that they met and
the crashes that they made.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from inspect import currentframe
from itertools import product
from stat import S_ISDIR
from types import CodeType, CoroutineType, FrameType
from typing import Any, NamedTuple, TypeVar

from faults.crash_point import CrashKind, Phase
from powercut.place import Place
from sim.disk.cache.operation import Create, Operation
from sim.disk.disk import Disk

T = TypeVar("T")


class Site(NamedTuple):
    """Operations of one kind on behalf of the same ``callers``: places, the innermost first.

    ``operation`` is the kind, followed by ``directory`` if it is done to one.
    """

    operation: str
    callers: tuple[Place, ...]

    def is_for(self, *functions: str) -> bool:
        """Return whether all these functions, with or without their class, are callers."""
        called = {place.function for place in self.callers}
        called |= {name.rpartition(".")[2] for name in called}
        return called.issuperset(functions)

    def __str__(self) -> str:
        return f"{self.operation} at {self.callers[0]}" if self.callers else self.operation


class Watch:
    """Records in ``sites`` the site of every operation of ``disk``, in their order.

    ``package`` is the folder of the program's package; frames of other code are no callers,
    nor are those of ``host``, the file of the package that makes the calls of ``os``.
    The watch passes every operation on to the interposer that the disk had before. ``main``,
    if set, is a coroutine that counts as a caller of all operations, including those of the
    tasks that it has started: a recovery.
    """

    def __init__(self, disk: Disk, package: str, host: str = "") -> None:
        self.sites: list[Site] = []
        self.main: Coroutine[Any, Any, Any] | None = None
        self._package = os.path.abspath(package) + os.sep
        self._host = host
        self._handed: tuple[Place, ...] = ()
        self._places: dict[tuple[CodeType, int], Place | None] = {}
        self._disk = disk
        self._next = disk.interposer
        disk.interposer = self

    def before(self, operation: Operation, number: int) -> Operation:
        """Record the site of the operation."""
        del self.sites[number - 1 :]
        callers = [*self._frames(currentframe()), *self._handed]
        known = {place.function for place in callers}
        callers += [place for place in self._awaited(self.main) if place.function not in known]
        self.sites.append(Site(self._noun(operation), tuple(callers)))
        return operation if self._next is None else self._next.before(operation, number)

    def after(self, operation: Operation, number: int) -> None:
        """Pass it on."""
        if self._next is not None:
            self._next.after(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Pass it on: a read changes nothing, so it is no crash point."""
        return data if self._next is None else self._next.reading(path, inode, offset, data)

    def hand_over(self, call: Callable[[], T]) -> Callable[[], T]:
        """Return ``call`` with the current callers as its own, for a worker that runs it later."""
        callers = tuple(self._frames(currentframe()))

        def handed() -> T:
            before, self._handed = self._handed, callers
            try:
                return call()
            finally:
                self._handed = before

        return handed

    def _noun(self, operation: Operation) -> str:
        noun = type(operation).__name__
        if isinstance(operation, Create):
            mode = operation.mode
        elif operation.path:
            mode = self._disk.inode(operation.inode).mode
        else:
            return noun
        return f"{noun} directory" if S_ISDIR(mode) else noun

    def _frames(self, frame: FrameType | None) -> Iterator[Place]:
        """Yield the places of the program on the stack, the innermost first."""
        while frame is not None:
            place = self._place(frame.f_code, frame.f_lineno)
            if place is not None:
                yield place
            frame = frame.f_back

    def _awaited(self, coroutine: object) -> Iterator[Place]:
        """Yield the program's coroutines that a suspended one awaits, the outermost first."""
        while isinstance(coroutine, CoroutineType):
            place = self._place(coroutine.cr_code, coroutine.cr_code.co_firstlineno)
            if place is not None:
                yield place
            coroutine = coroutine.cr_await

    def _place(self, code: CodeType, line: int) -> Place | None:
        key = code, line
        if key not in self._places:
            file = code.co_filename
            inside = file.startswith(self._package) and file != self._host
            root = len(os.path.dirname(self._package[:-1])) + 1
            self._places[key] = Place(file[root:], code.co_qualname, line) if inside else None
        return self._places[key]


class Hit(NamedTuple):
    """One way to crash a site; ``during`` names the action that was running."""

    during: str
    site: Site
    phase: Phase
    kind: CrashKind


@dataclass(slots=True)
class Coverage:
    """``met`` are the sites by the running action; ``hits`` count the crashes of each."""

    met: dict[str, dict[Site, None]] = field(default_factory=dict)
    hits: Counter[Hit] = field(default_factory=Counter)

    def meet(self, during: str, site: Site) -> None:
        """Count an operation of this site."""
        self.met.setdefault(during, {})[site] = None

    def hit(self, during: str, site: Site, phase: Phase, kind: CrashKind) -> None:
        """Count a crash in an operation of this site whose recovery was checked."""
        self.meet(during, site)
        self.hits[Hit(during, site, phase, kind)] += 1

    def gaps(self) -> Iterator[Hit]:
        """Yield the untried crashes of all sites that were met."""
        for during, sites in self.met.items():
            for site, phase, kind in product(sites, Phase, CrashKind):
                if not self.hits[hit := Hit(during, site, phase, kind)]:
                    yield hit


class SubStep(NamedTuple):
    """One named piece of the program's work: the operations that have these callers.

    An operation belongs to it if all ``functions`` are callers of its site.
    """

    name: str
    operation: str
    functions: tuple[str, ...]

    def untried(self, coverage: Coverage) -> Iterator[str]:
        """Describe each crash of this piece that was not made."""
        hits = {
            (hit.phase, hit.kind)
            for hit, count in coverage.hits.items()
            if count and hit.site.operation == self.operation and hit.site.is_for(*self.functions)
        }
        for phase, kind in product(Phase, CrashKind):
            if (phase, kind) not in hits:
                yield f"{self.name}: no {kind} {phase} it"
