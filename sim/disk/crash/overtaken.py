"""The pieces on both sides of a barrier, less the parts that later pieces have overtaken.

A file may have had a name for a time, and lost it again, before a barrier makes its last
names durable. Such a **passing** name does not reach the platter, and the file that had the
name before may still have it after a power cut (docs/disk.md, class B7).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sim.disk.cache.operation import Sync
from sim.disk.crash.micro_operation import (
    Arrival,
    Departure,
    ForgetName,
    LinkName,
    MicroOperation,
    MoveName,
    SetSize,
    UnlinkName,
    WriteBlock,
    names_of,
)
from sim.disk.crash.notes import CoveredName, LoggedName, Note
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import Coverage

_Name = tuple[int, str]


class Split(NamedTuple):
    """The pieces that a barrier applies to the platter, and those that stay unsynced.

    ``notes`` are its notes. ``allows_more``: a power cut may leave states that were
    impossible before the barrier.
    """

    applied: list[MicroOperation]
    left: list[MicroOperation]
    notes: list[Note]
    allows_more: bool


def split(
    ordering: Ordering, durable: int, sync: Sync, is_directory: Callable[[int], bool]
) -> Split:
    """Return both sides of a barrier that covers the set ``durable``."""
    micros = ordering.micros
    if not sync.inode:
        return Split(list(micros), [], [], allows_more=False)
    keeps_old_names = ordering.model.coverage is Coverage.NEEDS
    passing = _passing(ordering, durable) if keeps_old_names else set()
    applied: list[MicroOperation] = []
    open_parts: dict[int, list[UnlinkName]] = {}
    notes: list[Note] = []
    passed = set[tuple[int, _Name]]()
    for index, micro in enumerate(micros):
        if not durable >> index & 1:
            continue
        if index not in passing:
            applied += _less_passed(micro, passed)
        else:
            if isinstance(micro, MoveName):
                applied += _less_passed(_without_new_name(micro), passed)
                if is_directory(micro.number):
                    applied += _loss(micro)
            passed.add((micro.number, names_of(micro)[-1]))
        if not (keeps_old_names and isinstance(micro, Arrival)):
            continue
        if is_directory(micro.number):
            continue
        losses = list(_loss(micro))
        if index not in passing:
            notes += _notes(micro, sync)
        elif losses and losses[0].directory == sync.inode:
            applied += losses
        else:
            open_parts[index] = losses
    left, covered = _left_over(ordering, durable, passing, open_parts)
    in_order = sorted((*covered, *notes), key=lambda note: note.operation)
    return Split(applied, left, in_order, allows_more=bool(passing))


def _passing(ordering: Ordering, durable: int) -> set[int]:
    """Return the durable pieces that gave a file a name which a durable piece took from it."""
    found: set[int] = set()
    departed: set[tuple[int, _Name]] = set()
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        if not durable >> index & 1:
            continue
        if isinstance(micro, Arrival) and (micro.number, names_of(micro)[-1]) in departed:
            found.add(index)
        if isinstance(micro, Departure):
            departed.add((micro.number, (micro.directory, micro.name)))
    return found


def _less_passed(micro: MicroOperation, passed: set[tuple[int, _Name]]) -> Iterator[MicroOperation]:
    """Yield a piece, unless it only takes away a passing name.

    Its directory may not be on the platter either.
    """
    if isinstance(micro, UnlinkName) and (micro.number, (micro.directory, micro.name)) in passed:
        return
    yield micro


def _notes(micro: LinkName | MoveName, sync: Sync) -> Iterator[Note]:
    """Yield the notes of a new name that a barrier covers without one on its directory."""
    directory, name = names_of(micro)[-1]
    if directory != sync.inode:
        yield LoggedName(micro.operation, micro.number, directory, name)
        if micro.replaced:
            yield CoveredName(micro.operation, micro.replaced, directory, name)


def _loss(micro: LinkName | MoveName) -> Iterator[UnlinkName]:
    """Yield the loss of a name to a rename, which a barrier on that file does not cover."""
    if micro.replaced:
        yield UnlinkName(micro.operation, micro.replaced, *names_of(micro)[-1])


def _without_new_name(move: MoveName) -> UnlinkName:
    operation, number, directory, name, _, _, _, uncovers = move
    return UnlinkName(operation, number, directory, name, uncovers=uncovers)


def _left_over(
    ordering: Ordering,
    durable: int,
    passing: set[int],
    open_parts: dict[int, list[UnlinkName]],
) -> tuple[list[MicroOperation], list[CoveredName]]:
    """Return the pieces that stay unsynced, less the parts that durable ones have overtaken.

    Those parts are data that a truncation cut off, sizes before one that was set, names that
    another file has now, and removals of a durable name that the file has again. The second
    list has the removals of names that another file has now.
    """
    if not open_parts and durable == (1 << len(ordering.micros)) - 1:
        return [], []
    cuts: dict[int, int] = {}
    names: dict[_Name, int] = {}
    left: list[MicroOperation] = []
    covered: list[CoveredName] = []
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        parts: Iterable[MicroOperation] = open_parts.get(index, ())
        if durable >> index & 1:
            if isinstance(micro, SetSize) and not micro.grows:
                cut = sys.maxsize if micro.cut is None else micro.cut
                cuts[micro.number] = min(cut, cuts.get(micro.number, cut))
            if isinstance(micro, Arrival) and index not in passing:
                names.setdefault(names_of(micro)[-1], micro.number)
        elif micro.number in cuts and isinstance(micro, SetSize | WriteBlock):
            parts = _less_cut(micro, cuts[micro.number])
        elif isinstance(micro, Arrival):
            parts = _less_name(micro, names)
        else:
            parts = (micro,)
        for part in parts:
            if isinstance(part, UnlinkName | ForgetName) and _is_back(part, names):
                continue
            if isinstance(part, UnlinkName) and _is_taken(part, names):
                covered.append(CoveredName(part.operation, part.number, part.directory, part.name))
                if not part.moved_to:
                    continue
                # A barrier on the directory still brings the new name of a file that moved.
            left.append(part)
    return left[::-1], covered[::-1]


def _is_taken(unlink: UnlinkName, names: dict[_Name, int]) -> bool:
    return names.get((unlink.directory, unlink.name), unlink.number) != unlink.number


def _is_back(removal: UnlinkName | ForgetName, names: dict[_Name, int]) -> bool:
    return names.get((removal.directory, removal.name)) == removal.number


def _less_cut(micro: SetSize | WriteBlock, cut: int) -> Iterator[MicroOperation]:
    """Yield a piece without what later, durable truncations dropped from byte ``cut`` on."""
    if isinstance(micro, WriteBlock) and micro.offset < cut:
        yield micro._replace(data=micro.data[: cut - micro.offset])


def _less_name(micro: LinkName | MoveName, names: dict[_Name, int]) -> Iterator[MicroOperation]:
    """Yield a piece without a name that means another file by a later, durable change."""
    if names.get(names_of(micro)[-1], micro.number) == micro.number:
        yield micro
        return
    yield from _loss(micro)
    if isinstance(micro, MoveName):
        yield _without_new_name(micro)
