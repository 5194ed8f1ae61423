"""The pieces on both sides of a barrier, less what later pieces have overtaken.

A file may have had a name for a time, and lost it again, before a barrier makes its last
names durable. Such a **passing** name does not reach the platter, and the file that had the
name before may still have it after a power cut (docs/disk.md, class B4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sim.disk.cache.operation import Sync
from sim.disk.crash.micro_operation import (
    ForgetName,
    LinkName,
    LoggedName,
    MicroOperation,
    MoveName,
    SetSize,
    UnlinkName,
    WriteBlock,
    names_of,
)
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import Coverage

_Name = tuple[int, str]


class Split(NamedTuple):
    """The pieces that a barrier applies to the platter, and those that stay unsynced.

    ``allows_more``: a power cut may leave states that were impossible before the barrier.
    """

    applied: list[MicroOperation]
    left: list[MicroOperation]
    allows_more: bool


def split(
    ordering: Ordering, durable: int, sync: Sync, is_directory: Callable[[int], bool]
) -> Split:
    """Return both sides of a barrier that covers the set ``durable``."""
    micros = ordering.micros
    if not sync.inode:
        return Split(list(micros), [], allows_more=False)
    passing = _passing(ordering, durable)
    applied: list[MicroOperation] = []
    open_parts: dict[int, list[MicroOperation]] = {}
    for index, micro in enumerate(micros):
        if not durable >> index & 1:
            continue
        if index not in passing:
            applied.append(micro)
        elif isinstance(micro, MoveName):
            applied.append(_without_new_name(micro))
        if ordering.model.coverage is Coverage.NEEDS and not is_directory(micro.number):
            parts = [] if index in passing else list(_logged(micro))
            parts += _loss(micro)
            if parts and parts[0].directory == sync.inode:
                applied += parts
            else:
                open_parts[index] = [*parts]
    left = list(_left_over(ordering, durable, passing, open_parts))
    return Split(applied, left, allows_more=bool(passing))


def _passing(ordering: Ordering, durable: int) -> set[int]:
    """Return the durable pieces that gave a file a name which a durable piece took from it."""
    found: set[int] = set()
    if ordering.model.coverage is not Coverage.NEEDS:
        return found
    departed: set[tuple[int, _Name]] = set()
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        if not durable >> index & 1:
            continue
        if (
            isinstance(micro, LinkName | MoveName)
            and (micro.number, names_of(micro)[-1]) in departed
        ):
            found.add(index)
        if isinstance(micro, UnlinkName | MoveName):
            departed.add((micro.number, (micro.directory, micro.name)))
    return found


def _logged(micro: MicroOperation) -> Iterator[LoggedName | UnlinkName]:
    """Yield the new name, which a barrier on its file does not cover in its directory."""
    if isinstance(micro, LinkName | MoveName):
        yield LoggedName(micro.operation, micro.number, *names_of(micro)[-1])


def _loss(micro: MicroOperation) -> Iterator[UnlinkName]:
    """Yield the loss of a name to a rename, which a barrier on that file does not cover."""
    if isinstance(micro, LinkName | MoveName) and micro.replaced:
        yield UnlinkName(micro.operation, micro.replaced, *names_of(micro)[-1])


def _without_new_name(move: MoveName) -> UnlinkName:
    return UnlinkName(move.operation, move.number, move.directory, move.name)


def _left_over(
    ordering: Ordering,
    durable: int,
    passing: set[int],
    open_parts: dict[int, list[MicroOperation]],
) -> Iterator[MicroOperation]:
    """Yield the pieces that stay unsynced, less what the durable ones have overtaken.

    These are data that a truncation cut off, sizes before one that was set, names that
    another file has now, and removals of a durable name that the file has again.
    """
    sizes: dict[int, SetSize] = {}
    names: dict[_Name, int] = {}
    left: list[MicroOperation] = []
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        left += open_parts.get(index, ())
        if durable >> index & 1:
            if isinstance(micro, SetSize) and not micro.grows:
                sizes.setdefault(micro.number, micro)
            if isinstance(micro, LinkName | MoveName) and index not in passing:
                names.setdefault(names_of(micro)[-1], micro.number)
            continue
        if micro.number in sizes and isinstance(micro, SetSize | WriteBlock):
            left += _less_cut(micro, sizes[micro.number])
        elif isinstance(micro, LinkName | MoveName):
            left += _less_name(micro, names)
        elif not (isinstance(micro, ForgetName) and _is_back(micro, names)):
            left.append(micro)
    return reversed(left)


def _is_back(forget: ForgetName, names: dict[_Name, int]) -> bool:
    return names.get((forget.directory, forget.name)) == forget.number


def _less_cut(micro: SetSize | WriteBlock, size: SetSize) -> Iterator[MicroOperation]:
    """Yield a piece without what a later, durable truncation cut off."""
    if isinstance(micro, SetSize):
        return
    if size.cut is None or micro.offset + len(micro.data) <= size.cut:
        yield micro
    elif micro.offset < size.cut:
        yield micro._replace(data=micro.data[: size.cut - micro.offset])


def _less_name(micro: LinkName | MoveName, names: dict[_Name, int]) -> Iterator[MicroOperation]:
    """Yield a piece without a name that means another file by a later, durable change."""
    if names.get(names_of(micro)[-1], micro.number) == micro.number:
        yield micro
        return
    yield from _loss(micro)
    if isinstance(micro, MoveName):
        yield _without_new_name(micro)
