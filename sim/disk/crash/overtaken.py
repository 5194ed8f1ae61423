"""The pieces on both sides of a barrier, less what later pieces have overtaken.

A file may have had a name for a time, and lost it again, before a barrier makes its last
names durable. Such a **passing** name does not reach the platter, and the file that had the
name before may still have it after a power cut (docs/disk.md, class B4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.operation import Sync
from sim.disk.crash.micro_operation import (
    LinkName,
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


def split(ordering: Ordering, durable: int, sync: Sync, table: InodeTable) -> Split:
    """Return both sides of a barrier that covers the set ``durable``; ``table``: the platter."""
    micros = ordering.micros
    if not sync.inode:
        return Split(list(micros), [], allows_more=False)
    passing = _passing(ordering, durable)
    applied: list[MicroOperation] = []
    losses: dict[int, UnlinkName] = {}
    for index, micro in enumerate(micros):
        if not durable >> index & 1:
            continue
        loss = _loss(micro, table) if ordering.model.coverage is Coverage.NEEDS else None
        if index not in passing:
            applied.append(micro)
        elif isinstance(micro, MoveName):
            applied.append(UnlinkName(micro.operation, micro.number, micro.directory, micro.name))
        if loss is not None and loss.directory == sync.inode:
            applied.append(loss)
        elif loss is not None:
            losses[index] = loss
    left = list(_left_over(ordering, durable, losses))
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


def _loss(micro: MicroOperation, table: InodeTable) -> UnlinkName | None:
    """Return the loss of a durable name to a rename, which a barrier on that file leaves open."""
    if not isinstance(micro, LinkName | MoveName) or not micro.replaced:
        return None
    directory, name = names_of(micro)[-1]
    holder, loser = table.get(directory), table.get(micro.replaced)
    is_durable = holder is not None and holder.entries.get(name) == micro.replaced
    if not is_durable or loser is None or loser.is_directory:
        return None
    return UnlinkName(micro.operation, micro.replaced, directory, name)


def _left_over(
    ordering: Ordering, durable: int, losses: dict[int, UnlinkName]
) -> Iterator[MicroOperation]:
    """Yield the pieces that stay unsynced, less what the durable ones have overtaken.

    These are data that a truncation cut off, sizes before one that was set, and names that
    another file has now.
    """
    sizes: dict[int, SetSize] = {}
    names: dict[_Name, int] = {}
    left: list[MicroOperation] = []
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        if index in losses:
            left.append(losses[index])
        if durable >> index & 1:
            if isinstance(micro, SetSize) and not micro.grows:
                sizes.setdefault(micro.number, micro)
            for name in names_of(micro):
                names.setdefault(name, micro.number)
            continue
        kept: MicroOperation | None = micro
        if micro.number in sizes:
            kept = _less_cut(micro, sizes[micro.number])
        elif isinstance(micro, LinkName | MoveName):
            kept = _less_name(micro, names)
        if kept is not None:
            left.append(kept)
    return reversed(left)


def _less_cut(micro: MicroOperation, size: SetSize) -> MicroOperation | None:
    """Return a piece without what a later, durable truncation cut off; None if nothing is left."""
    if isinstance(micro, SetSize):
        return None
    if isinstance(micro, WriteBlock) and size.cut is not None:
        kept = micro.data[: max(size.cut - micro.offset, 0)]
        return micro._replace(data=kept) if kept else None
    return micro


def _less_name(micro: LinkName | MoveName, names: dict[_Name, int]) -> MicroOperation | None:
    """Return a piece without a name that means another file by a later, durable change."""
    if names.get(names_of(micro)[-1], micro.number) == micro.number:
        return micro
    if isinstance(micro, LinkName):
        return None
    return UnlinkName(micro.operation, micro.number, micro.directory, micro.name)
