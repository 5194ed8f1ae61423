"""Stores to mapped memory after which the program goes on before the kernel writes their pages.

A recorded program in another process shows such a store only when its page is written. Until
then the disk that is recorded lacks it, but a kill does not lose it: only a power cut does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Final, NamedTuple

from faults.crash_point import CrashKind
from powercut.explorer.crash_state import at_start, image_at
from powercut.explorer.event import Event, events_of
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.page_cache import PageCache
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.repair import Moment, moment_of
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.cache.operation import Write
from sim.disk.crash.image import Image
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk

_MOST_GROUPS: Final = 16
"""Groups of mapped writes behind a kill that are tried."""

_MOST_COMPARED: Final = 8
"""Failures under one model that are compared with the stores."""


class UnsyncedStores(NamedTuple):
    """Stores to mapped memory of ``paths`` with no barrier up to ``last``.

    That is an acknowledgement, or if there is none before the crash, the operation before it.
    """

    paths: tuple[str, ...]
    last: Event


def unwritten_stores(found: Exploration) -> dict[Moment, tuple[str, ...]]:
    """Return the moments at which stores to mapped memory are missing, with the paths.

    A kill leaves a disk there that the check refuses, but accepts if pages are written that were
    written later. A moment right behind such a write, which a power cut may lose, belongs to it.
    """
    killed = {
        failure.state
        for failure in found.failures
        if not failure.needs_power_cut and len(failure.crashes) == 1
    }
    workload, mapped = found.workload, frozenset(found.workload.mapped)
    journal, history = workload.journal, workload.history
    moments: dict[Moment, tuple[str, ...]] = {}
    if not killed or not mapped:
        return moments
    by_state: dict[tuple[int, object], tuple[str, ...]] = {}
    unsynced = at_start(journal, found.model)
    cache = PageCache(journal.image.cached)
    for number in range(len(journal) + 1):
        before = history.entries_by(number, returned=False)
        if number:
            unsynced.advance(journal[number - 1], number)
            cache.advance(journal[number - 1], unsynced)
        if number in mapped and (number - 1, before) in moments:
            moments[number, before] = moments[number - 1, before]
        for entries in {before, history.entries_by(number, returned=True)}:
            state = entries, cache.key
            if state not in killed:
                continue
            # Before the first acknowledgement a page was synced without the others. Pages that are
            # written together may be one change, and stores may follow a plain write.
            is_synced = number in mapped and number + 1 not in mapped
            if not entries and not is_synced and (number - 1, 0) not in moments:
                continue
            if state not in by_state:
                if found.checker.is_over(found):
                    return moments
                by_state[state] = _missing(found, cache.copy(), unsynced, number, entries)
            moments[number, entries] = by_state[state]
    return {moment: paths for moment, paths in moments.items() if paths}


def stores_lost_at(
    failure: Failure, moments: Mapping[Moment, tuple[str, ...]], workload: RecordedWorkload
) -> UnsyncedStores:
    """Return the stores that a failure at one of these moments loses."""
    moment = moment_of(failure)
    before = [event for event in events_of(workload) if event.is_before(*moment)]
    last = next((each for each in reversed(before) if each.operation is None), before[-1])
    return UnsyncedStores(moments[moment], last)


def as_power_cut(failure: Failure) -> Failure:
    """Return a kill that seems to lose such stores as the power cut that loses them."""
    point, *others = failure.crashes
    if others or point.kind is CrashKind.POWER_CUT:
        return failure
    return replace(failure, crashes=(replace(point, kind=CrashKind.POWER_CUT, kept=0),))


def explains(
    stores: UnsyncedStores,
    gap: Gap,
    failures: Mapping[str, Sequence[Failure]],
    unsafe: Mapping[str, Exploration],
) -> bool:
    """Return whether the failures of ``gap`` have lost these stores, and so have the same cause.

    Then the gap begins with a write of their pages, which came behind the acknowledgement, and the
    check fails on the images also if nothing is acknowledged but the stores. The simplest failures
    under each model are compared.
    """
    workload = next(iter(unsafe.values())).workload
    if gap.path not in stores.paths or gap.first.number not in workload.mapped:
        return False
    known = workload.history.known(stores.last.entries)
    compared = [
        (unsafe[name], failure)
        for name, those in failures.items()
        for failure in [each for each in those if len(each.crashes) == 1][:_MOST_COMPARED]
    ]
    for found, failure in compared:
        if failure.entries < stores.last.entries:
            return False
        image = image_at(workload.journal, found.model, failure.crashes[0])
        if found.checker.violation(Disk(image, found.model), known) is None:
            return False
    return bool(compared)


def _missing(
    found: Exploration, cache: PageCache, unsynced: Unsynced, number: int, entries: int
) -> tuple[str, ...]:
    """Return the files whose mapped pages a disk lacks after operation ``number``."""
    workload = found.workload
    known, inodes = workload.history.known(entries), cache.inodes
    for writes in islice(_groups(workload, number), _MOST_GROUPS):
        paths: dict[str, None] = {}
        for write in writes:
            inode = inodes.get(write.inode)
            if inode is not None and write.offset + len(write.data) <= inode.size:
                cache.advance(write, unsynced)
                paths[write.path] = None
        image = Image.of_platter(cache.inodes, workload.journal.next_inode)
        if paths and found.checker.violation(Disk(image, found.model), known) is None:
            return tuple(paths)
    return ()


def _groups(workload: RecordedWorkload, number: int) -> Iterator[list[Write]]:
    """Yield the mapped writes behind operation ``number``, those in succession as one."""
    later = enumerate(each for each in workload.mapped if each > number)
    for _, group in groupby(later, lambda placed: placed[1] - placed[0]):
        operations = [workload.journal[each - 1] for _, each in group]
        yield [each for each in operations if isinstance(each, Write)]
