"""Explore: crash a workload at every operation, in every way that the model allows.

The workload runs **once**, on a recording disk; the journal is then read operation by
operation, and at each crash point every survivor set is built, told apart from those seen
before, booted and checked. Nothing runs twice, so the cost grows linearly with the
operations.

What a crash point allows beyond the one before it carries the mark of the operation
between them; only that is built. After an acknowledgement everything is built anew, since
the same disk that was right before it may be wrong now; and after a barrier that takes
something out of its order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History, Known
from oracles.old_or_new import OldOrNew, paths_of
from oracles.violation import UnreadableAfterCrash, Violation
from powercut.report.crash_text import lost_lines, names_on
from sim.choices import SeededChoices
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import FailedSync, Operation, Sync, Write
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, DirectoryOrder, PersistenceModel, model_named
from sim.disk.crash.state_space import State, StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from sim.errors import HarnessError

Workload = Callable[[Process, History], None]
_Key = tuple[object, ...]
Check = Callable[[Process, Known], None]

KEPT_FAILURES: Final = 16
# How long to look for states that have anything new in them before it is called too much.
BRANCHES_PER_STATE: Final = 16
# Enough for every prefix, every single loss and survival, and every torn end.
TELLING_PER_MICRO: Final = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """How far to go where there is too much.

    ``states_per_point``: up to so many states of one crash point, all are built. Beyond
    that: the telling ones, and ``samples`` drawn with ``seed``. ``nested``: how many
    times a crash may hit what the check itself writes (its recovery).
    """

    states_per_point: int = 4096
    samples: int = 256
    seed: int = 0
    nested: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A crash that the check did not accept; ``crashes`` holds one point per lifetime.

    ``told``: in words, what the crash of the workload met, and what it lost.
    """

    crashes: tuple[CrashPoint, ...]
    violation: Violation
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class Exploration:
    """What a model allows, and what came of it.

    ``operations``: of the workload. ``built``: states built, ``states``: distinct ones
    that were booted and checked. ``exhaustive``: no legal state was left out.
    ``failed``: how many of the states the check refused; ``failures`` keeps the first.
    """

    model: PersistenceModel
    operations: int = 0
    built: int = 0
    states: int = 0
    failed: int = 0
    exhaustive: bool = True
    failures: list[Failure] = field(default_factory=list)

    @property
    def safe(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        how = "exhaustive" if self.exhaustive else "sampled"
        verdict = "safe" if self.safe else f"unsafe in {self.failed}"
        return f"{self.model.name}: {verdict} of {self.states} states, {how}"


class _Visit(NamedTuple):
    """A crash image that wants a look, and how it came about.

    ``key``: what the check sees, and, where its own writes are crashed as well, what is
    unsynced beneath them.
    """

    image: Image
    key: _Key
    crashes: tuple[CrashPoint, ...]
    said: int


def explore(
    workload: Workload,
    check: Check | None = None,
    model: str | PersistenceModel = "posix",
    limits: Limits | None = None,
    image: Image | None = None,
) -> Exploration:
    """Run ``workload(process, ack)`` once, and check every crash of it.

    ``check(process, known)`` gets the disk as the next boot finds it; it raises a
    ``Violation`` (or anything else, which counts as "does not come up"). Without one, the
    values given to ``ack`` are mappings from path to content, and the files must be old
    or new. ``image`` is the disk that the workload starts from.

    Raises ``HarnessError`` for an unknown model, and if the workload itself fails
    although nothing was injected.
    """
    found = model_named(model) if isinstance(model, str) else model
    return _Explorer(workload, check, found, limits or Limits(), image or Image.empty()).run()


def explore_models(
    workload: Workload, check: Check | None = None, limits: Limits | None = None
) -> dict[str, Exploration]:
    """Explore under every persistence model, strongest first; the verdict names them."""
    return {name: explore(workload, check, name, limits) for name in MODELS}


class _Explorer:
    def __init__(
        self,
        workload: Workload,
        check: Check | None,
        model: PersistenceModel,
        limits: Limits,
        image: Image,
    ) -> None:
        self.limits = limits
        self.image = image
        self.result = Exploration(model)
        self.disk = Disk(image, model)
        self.history = History(lambda: self.disk.operations)
        self._depth_seen: dict[_Key, int] = {}
        self._record(workload)
        self.check = check or self._default_check()

    def _record(self, workload: Workload) -> None:
        try:
            workload(Process(self.disk), self.history)
        except HarnessError:
            raise
        except Exception as error:
            raise HarnessError(
                f"the workload failed before any crash: {type(error).__name__}: {error}"
            ) from error
        self.result.operations = self.disk.operations

    def _default_check(self) -> Check:
        paths = paths_of(entry.value for entry in self.history.entries)
        old_or_new = OldOrNew(_contents(Process(Disk(self.image)), paths))
        return lambda process, known: old_or_new(_contents(process, paths), known)

    def run(self) -> Exploration:
        entries = len(self.history.entries)
        for visit in self._crashes(self.disk, (), entries):
            self._visit(visit)
        return self.result

    # -- every crash of one lifetime -----------------------------------------------------

    def _crashes(self, disk: Disk, before: tuple[CrashPoint, ...], said: int) -> Iterator[_Visit]:
        """Yield every crash of a recorded lifetime that was not seen before.

        ``said`` is how much of the history was known when it ended, if it was a recovery;
        the workload's own lifetime (``before`` is empty) tells it itself.
        """
        unsynced = Unsynced(disk.model, disk.image.platter, disk.image.unsynced)
        reached = 0
        for number in range(len(disk.journal) + 1):
            since = 0
            if number:
                operation = disk.journal[number - 1]
                since = len(unsynced.micros)
                if not before:
                    said = self.history.said_by(number, returned=False)
                yield from self._kills_during(disk, unsynced, operation, number, before, said)
                unsynced.advance(operation, number)
                if _may_add(operation, disk.model):
                    since = 0
                if since < len(unsynced.micros) or said != reached:
                    yield from self._at(disk, unsynced, number, before, said, since)
                    reached = said
            if not before:
                said = self.history.said_by(number, returned=True)
            if said != reached or not number:
                yield from self._at(disk, unsynced, number, before, said, 0)
                reached = said

    def _at(
        self,
        disk: Disk,
        unsynced: Unsynced,
        number: int,
        before: tuple[CrashPoint, ...],
        said: int,
        since: int,
    ) -> Iterator[_Visit]:
        """Yield the kill and the power cuts right after operation ``number``."""
        phase = Phase.AFTER if number else Phase.BEFORE
        operation = max(number, 1)
        space = StateSpace(unsynced)
        killed, kill_key = self._killed(unsynced, disk.next_inode, space, number)
        point = CrashPoint(operation, phase, CrashKind.KILL)
        yield _Visit(killed, (said, *kill_key), (*before, point), said)
        for inodes, key, survivors in self._states(space, since):
            self.result.built += 1
            if self._is_worth(visit_key := (said, key), len(before) + 1):
                point = CrashPoint(operation, phase, CrashKind.POWER_CUT, survivors)
                image = Image.of_platter(inodes, disk.next_inode)
                yield _Visit(image, visit_key, (*before, point), said)

    def _states(self, space: StateSpace, since: int) -> Iterator[State]:
        limit, count = self.limits.states_per_point, len(space.micros)
        yield from islice(space.all(since, BRANCHES_PER_STATE * (limit + count)), limit)
        if space.complete:
            return
        self.result.exhaustive = False
        for survivors in islice(space.representative(), limit + TELLING_PER_MICRO * count):
            yield space.state_of(survivors)
        source = SeededChoices(self.limits.seed)
        everything = (1 << count) - 1
        masks = (source.integer("survivors", 0, everything) for _ in range(self.limits.samples))
        for survivors in space.sampled(masks):
            yield space.state_of(survivors)

    def _killed(
        self, unsynced: Unsynced, next_inode: int, space: StateSpace, operations: int
    ) -> tuple[Image, _Key]:
        state = space.state_of(SurvivorSet())
        carried = unsynced.carried_over(operations)
        image = Image(unsynced.platter, carried, state.inodes, next_inode)
        # One page cache may have different things unsynced: a file written and put back.
        beneath = (space.base_key, carried) if self.limits.nested else ()
        return image, (state.key, beneath)

    def _kills_during(
        self,
        disk: Disk,
        unsynced: Unsynced,
        operation: Operation,
        number: int,
        before: tuple[CrashPoint, ...],
        said: int,
    ) -> Iterator[_Visit]:
        """Yield the kills that find a long write done in part: Linux looks between pages."""
        if not isinstance(operation, Write):
            return
        start = operation.offset
        length = len(operation.data)
        for kept in range(BLOCK_BYTES - start % BLOCK_BYTES, length, BLOCK_BYTES):
            partial = Unsynced(disk.model, unsynced.platter, unsynced.micros)
            partial.advance(operation._replace(data=operation.data[:kept]), number)
            image, key = self._killed(partial, disk.next_inode, StateSpace(partial), number)
            point = CrashPoint(number, Phase.DURING, CrashKind.KILL, kept=kept)
            yield _Visit(image, (said, *key), (*before, point), said)

    # -- one crash image -----------------------------------------------------------------

    def _is_worth(self, key: _Key, depth: int) -> bool:
        """Say whether an image is new, or was seen only where fewer crashes were to follow."""
        seen = self._depth_seen.get(key)
        return seen is None or (depth < seen and depth <= self.limits.nested)

    def _visit(self, visit: _Visit) -> None:
        depth = len(visit.crashes)
        if not self._is_worth(visit.key, depth):
            return
        self.result.states += visit.key not in self._depth_seen
        self._depth_seen[visit.key] = depth
        disk = Disk(visit.image, self.result.model)
        try:
            self.check(Process(disk), self.history.known(visit.said))
        except HarnessError:
            raise
        except Violation as violation:
            self._fail(visit, violation)
            return
        except Exception as error:  # noqa: BLE001 - whatever the program raises is its answer
            reason = f"recovery raised {type(error).__name__}: {error}"
            self._fail(visit, UnreadableAfterCrash(reason))
            return
        if depth <= self.limits.nested and disk.journal:
            for nested in self._crashes(disk, visit.crashes, visit.said):
                self._visit(nested)

    def _fail(self, visit: _Visit, violation: Violation) -> None:
        self._depth_seen[visit.key] = 0
        self.result.failed += 1
        if len(self.result.failures) < KEPT_FAILURES:
            told = tuple(self._told(visit.crashes[0]))
            self.result.failures.append(Failure(visit.crashes, violation, told))

    def _told(self, point: CrashPoint) -> Iterator[str]:
        """Read the journal of the workload again, up to this crash, and say what it met."""
        unsynced = Unsynced(self.disk.model, self.image.platter, self.image.unsynced)
        done = point.operation - (point.phase is Phase.BEFORE)
        for number, operation in enumerate(self.disk.journal[:done], 1):
            unsynced.advance(operation, number)
        if not self.disk.journal:
            yield "before any operation"
            return
        met = self.disk.journal[point.operation - 1]
        yield f"{point.phase} {type(met).__name__.lower()} {met.path or 'everything'}"
        if point.kind is CrashKind.POWER_CUT:
            yield from lost_lines(unsynced.micros, point.survivors, names_on(self.disk))


def _may_add(operation: Operation, model: PersistenceModel) -> bool:
    """Say whether a barrier may leave disks that could not be there before it.

    A failed one forgets data that later data relied on. And where it makes one name durable
    but not the earlier changes of its directory (btrfs), those may now be lost without it.
    """
    if isinstance(operation, Sync):
        return model.directory_order is DirectoryOrder.SAME and not model.sync_metadata
    return isinstance(operation, FailedSync)


def _contents(process: Process, paths: list[str]) -> dict[str, bytes | None]:
    return {path: _content(process, path) for path in paths}


def _content(process: Process, path: str) -> bytes | None:
    try:
        descriptor = process.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    content = process.pread(descriptor, process.fstat(descriptor).st_size, 0)
    process.close(descriptor)
    return content
