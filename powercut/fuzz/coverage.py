"""Crash-point coverage: which places of the system were crashed, and how.

A **site** is one kind of operation, made from one place in the system under test, for the
callers that it was made for: the ``write`` of an atomic write is the same line of code for
a record and for a quarantine, and two sites. Callers are followed from a worker back to the
coroutine that handed the call over.

A site that was met is covered when it was crashed in each phase of the operation, by a kill
and by a power cut. Nothing here crashes anything: who does tells what was met and what was hit.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import cache
from inspect import currentframe
from itertools import product
from stat import S_ISDIR
from types import CodeType, CoroutineType, FrameType
from typing import Any, Final, NamedTuple, TypeVar

import system
from faults.crash_point import CrashKind, Phase
from sim.disk.cache.operation import Create, Operation
from sim.disk.disk import Disk
from system.ports import Workers

T = TypeVar("T")

_SYSTEM: Final = os.path.dirname(os.path.abspath(str(system.__file__)))


class Place(NamedTuple):
    """A line of the system: ``file`` from its root, ``function`` with the name of its class."""

    file: str
    function: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}"


class Site(NamedTuple):
    """``operation`` is the name of its kind, with ``directory`` behind it if it is done to one.

    ``callers`` are places, the innermost first.
    """

    operation: str
    callers: tuple[Place, ...]

    def is_for(self, *functions: str) -> bool:
        """Say whether all these functions, with or without their class, are among the callers."""
        called = {place.function for place in self.callers}
        called |= {name.rpartition(".")[2] for name in called}
        return called.issuperset(functions)

    def __str__(self) -> str:
        return f"{self.operation} at {self.callers[0]}" if self.callers else self.operation


class Watch:
    """Notes the site of every operation of a disk; ``sites`` is in their order.

    It stands in front of whatever interposer the disk had. ``main``, when it is set, is a
    coroutine for which everything is done, also what tasks of their own do: a recovery.
    """

    def __init__(self, disk: Disk) -> None:
        self.sites: list[Site] = []
        self.main: Coroutine[Any, Any, Any] | None = None
        self._handed: tuple[Place, ...] = ()
        self._disk = disk
        self._behind = disk.interposer
        disk.interposer = self

    def before(self, operation: Operation, number: int) -> Operation:
        """Note where the operation comes from."""
        del self.sites[number - 1 :]
        callers = [*_frames(currentframe()), *self._handed]
        known = {place.function for place in callers}
        callers += [place for place in _awaited(self.main) if place.function not in known]
        self.sites.append(Site(self._noun(operation), tuple(callers)))
        return operation if self._behind is None else self._behind.before(operation, number)

    def after(self, operation: Operation, number: int) -> None:
        """Pass it on."""
        if self._behind is not None:
            self._behind.after(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Pass it on; reading changes nothing, so it is no crash point."""
        return data if self._behind is None else self._behind.reading(path, inode, offset, data)

    def _noun(self, operation: Operation) -> str:
        noun = type(operation).__name__
        if isinstance(operation, Create):
            mode = operation.mode
        elif operation.path:
            mode = self._disk.inode(operation.inode).mode
        else:
            return noun
        return f"{noun} directory" if S_ISDIR(mode) else noun

    def hand_over(self, call: Callable[[], T]) -> Callable[[], T]:
        """Return ``call`` so that what it does is done for those who hand it over now."""
        callers = tuple(_frames(currentframe()))

        def handed() -> T:
            before, self._handed = self._handed, callers
            try:
                return call()
            finally:
                self._handed = before

        return handed


class WatchedWorkers:
    """Workers that remember for whom they work; implements ``system.ports.Workers``."""

    def __init__(self, workers: Workers, watch: Watch) -> None:
        self._workers = workers
        self._watch = watch

    async def run(self, call: Callable[[], T]) -> T:
        """Run it as the workers behind do."""
        return await self._workers.run(self._watch.hand_over(call))


def _frames(frame: FrameType | None) -> Iterator[Place]:
    """Yield the places of the system on the stack, the innermost first."""
    while frame is not None:
        place = _place(frame.f_code, frame.f_lineno)
        if place is not None:
            yield place
        frame = frame.f_back


def _awaited(coroutine: object) -> Iterator[Place]:
    """Yield the coroutines of the system that a suspended one waits for, the outermost first."""
    while isinstance(coroutine, CoroutineType):
        place = _place(coroutine.cr_code, coroutine.cr_code.co_firstlineno)
        if place is not None:
            yield place
        coroutine = coroutine.cr_await


@cache
def _place(code: CodeType, line: int) -> Place | None:
    if not code.co_filename.startswith(_SYSTEM):
        return None
    return Place(f"system{code.co_filename[len(_SYSTEM) :]}", code.co_qualname, line)


class Hit(NamedTuple):
    """One way to crash a site, while ``during`` ran."""

    during: str
    site: Site
    phase: Phase
    kind: CrashKind


@dataclass(slots=True)
class Coverage:
    """``met``: sites by what was running. ``hits``: how often each was crashed, in which way."""

    met: dict[str, dict[Site, None]] = field(default_factory=dict)
    hits: Counter[Hit] = field(default_factory=Counter)

    def meet(self, during: str, site: Site) -> None:
        """An operation of this site was done."""
        self.met.setdefault(during, {})[site] = None

    def hit(self, during: str, site: Site, phase: Phase, kind: CrashKind) -> None:
        """A lifetime was ended in an operation of this site, and what came of it was judged."""
        self.meet(during, site)
        self.hits[Hit(during, site, phase, kind)] += 1

    def gaps(self) -> Iterator[Hit]:
        """Yield every crash of a site that was met, and that nobody has tried."""
        for during, sites in self.met.items():
            for site, phase, kind in product(sites, Phase, CrashKind):
                if not self.hits[hit := Hit(during, site, phase, kind)]:
                    yield hit


class SubStep(NamedTuple):
    """A piece of what the system does, as a reader names it, and the operation that it is.

    ``functions``: all of them are among the callers of its site.
    """

    name: str
    operation: str
    functions: tuple[str, ...]

    def untried(self, coverage: Coverage) -> Iterator[str]:
        """Yield the crashes of this piece that are missing, in words."""
        hits = {
            (hit.phase, hit.kind)
            for hit, count in coverage.hits.items()
            if count and hit.site.operation == self.operation and hit.site.is_for(*self.functions)
        }
        for phase, kind in product(Phase, CrashKind):
            if (phase, kind) not in hits:
                yield f"{self.name}: no {kind} {phase} it"
