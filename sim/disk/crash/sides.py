"""The sides of a barrier: the pieces that it puts on the platter, and those that stay unsynced.

Both are without the parts that later durable pieces have superseded. A file may have had a name
for a time, and lost it again, before a barrier makes its last names durable. Such a **passing**
name does not reach the platter, and the file that had the name before may still have it after a
power cut (docs/disk.md, class B7).
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
    FreeBlocks,
    LinkName,
    MicroOperation,
    MoveName,
    Name,
    SetSize,
    Size,
    UnlinkName,
    WriteBlock,
    given_name,
    taken_name,
)
from sim.disk.crash.notes import FormerName, LoggedName, Note
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import Coverage, RenameParts


def with_losses_of(ordering: Ordering, number: int) -> list[MicroOperation]:
    """Return the pieces before a barrier on a file, with each loss of a name to a rename cut off.

    A commit in the background may have emptied the log of btrfs since the file that moved was
    synced. Then a barrier on the replaced file logs the loss, and not the rename (docs/disk.md,
    class B22).
    """
    micros, model = ordering.micros, ordering.model
    if model.coverage is not Coverage.NEEDS or model.rename_parts is not RenameParts.SOME:
        return micros
    found: list[MicroOperation] = []
    for micro in micros:
        if isinstance(micro, Arrival) and number and micro.replaced == number:
            (loss,) = _loss(micro)
            if not found or found[-1][:4] != loss[:4]:
                found.append(loss)
        found.append(micro)
    return found


class Sides(NamedTuple):
    """The pieces that a barrier applies to the platter, and those that stay unsynced.

    ``notes`` are those that it leaves. ``allows_more``: a power cut may leave states that were
    impossible before the barrier.
    """

    applied: list[MicroOperation]
    left: list[MicroOperation]
    notes: list[Note]
    allows_more: bool


def sides(
    ordering: Ordering, durable: int, sync: Sync, is_directory: Callable[[int], bool]
) -> Sides:
    """Return both sides of a barrier that covers the set ``durable``."""
    micros = ordering.micros
    if not sync.inode:
        return Sides(list(micros), [], [], allows_more=False)
    keeps_old_names = ordering.model.coverage is Coverage.NEEDS
    passing = _passing_arrivals(ordering, durable) if keeps_old_names else set()
    applied: list[MicroOperation] = []
    losses_left: dict[int, list[UnlinkName]] = {}
    notes: list[Note] = []
    passed = set[tuple[int, Name]]()
    for index, micro in enumerate(micros):
        if not durable >> index & 1 or _takes_passing(micro, passed):
            continue
        if index not in passing:
            applied.append(micro)
            if keeps_old_names and isinstance(micro, Arrival) and not is_directory(micro.number):
                notes += _notes(micro, sync)
            continue
        assert isinstance(micro, Arrival), micro
        if isinstance(micro, MoveName):
            removal = _without_new_name(micro)
            if not _takes_passing(removal, passed):
                applied.append(removal)
        directory, name = given_name(micro)
        passed.add((micro.number, (directory, name)))
        if directory == sync.inode or is_directory(micro.number):
            applied += _loss(micro)
        else:
            losses_left[index] = list(_loss(micro))
    left, former = _left_over(ordering, durable, passing, losses_left)
    in_order = sorted((*former, *notes), key=lambda note: note.operation)
    return Sides(applied, left, in_order, allows_more=bool(passing))


def _passing_arrivals(ordering: Ordering, durable: int) -> set[int]:
    """Return the durable pieces that gave a file a name which a durable piece took from it."""
    found: set[int] = set()
    departed: set[tuple[int, Name]] = set()
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        if not durable >> index & 1:
            continue
        if isinstance(micro, Arrival) and (micro.number, given_name(micro)) in departed:
            found.add(index)
        if isinstance(micro, Departure):
            departed.add((micro.number, taken_name(micro)))
    return found


def _takes_passing(micro: MicroOperation, passed: set[tuple[int, Name]]) -> bool:
    """Return whether a piece only takes away a passing name, which is not on the platter.

    Its directory may not be there either.
    """
    return isinstance(micro, UnlinkName) and (micro.number, taken_name(micro)) in passed


def _notes(micro: LinkName | MoveName, sync: Sync) -> Iterator[Note]:
    """Yield the notes of a new name that a barrier covers without one on its directory."""
    directory, name = given_name(micro)
    if directory != sync.inode:
        yield LoggedName(micro.operation, micro.number, directory, name)
        if micro.replaced:
            yield FormerName(micro.operation, micro.replaced, directory, name)


def _loss(micro: LinkName | MoveName) -> Iterator[UnlinkName]:
    """Yield the loss of a name to a rename, which a barrier on that file does not cover."""
    if micro.replaced:
        yield UnlinkName(micro.operation, micro.replaced, *given_name(micro))


def _without_new_name(move: MoveName) -> UnlinkName:
    operation, number, directory, name, _, _, _, returns_to, _ = move
    return UnlinkName(operation, number, directory, name, returns_to=returns_to)


def _left_over(
    ordering: Ordering,
    durable: int,
    passing: set[int],
    losses_left: dict[int, list[UnlinkName]],
) -> tuple[list[MicroOperation], list[FormerName]]:
    """Return the pieces that stay unsynced, less the parts that durable ones have superseded.

    Those parts are data that a truncation cut off, sizes before one that was set, names that
    another file has now, and removals of a durable name that the file has again. The second
    list has the removals of names that another file has now.
    """
    if not losses_left and durable == (1 << len(ordering.micros)) - 1:
        return [], []
    cut_from: dict[int, int] = {}
    names: dict[Name, int] = {}
    left: list[MicroOperation] = []
    former: list[FormerName] = []
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        parts: Iterable[MicroOperation] = losses_left.get(index, ())
        if durable >> index & 1:
            if isinstance(micro, SetSize | FreeBlocks):
                cut = _cut_from(micro)
                cut_from[micro.number] = min(cut, cut_from.get(micro.number, cut))
            if isinstance(micro, Arrival) and index not in passing:
                names.setdefault(given_name(micro), micro.number)
        elif micro.number in cut_from and isinstance(micro, Size | WriteBlock):
            parts = _without_cut(micro, cut_from[micro.number])
        elif isinstance(micro, Arrival):
            parts = _without_taken_name(micro, names)
        else:
            parts = (micro,)
        for part in parts:
            if isinstance(part, UnlinkName | ForgetName) and _is_back(part, names):
                continue
            if isinstance(part, UnlinkName) and _is_taken(part, names):
                former.append(FormerName(part.operation, part.number, *taken_name(part)))
                if not part.moved_to:
                    continue
                # A barrier on the directory still brings the new name of a file that moved.
            left.append(part)
    return left[::-1], former[::-1]


def _is_taken(unlink: UnlinkName, names: dict[Name, int]) -> bool:
    return names.get(taken_name(unlink), unlink.number) != unlink.number


def _is_back(removal: UnlinkName | ForgetName, names: dict[Name, int]) -> bool:
    return names.get(taken_name(removal)) == removal.number


def _cut_from(micro: SetSize | FreeBlocks) -> int:
    """Return the byte from which a piece drops everything; a very large number if it drops none."""
    if isinstance(micro, FreeBlocks):
        return micro.start
    return sys.maxsize if micro.cut is None else micro.cut


def _without_cut(micro: Size | WriteBlock, cut: int) -> Iterator[MicroOperation]:
    """Yield a piece without the bytes that later, durable truncations dropped, from ``cut`` on."""
    if isinstance(micro, WriteBlock) and micro.offset < cut:
        yield micro._replace(data=micro.data[: cut - micro.offset])


def _without_taken_name(
    micro: LinkName | MoveName, names: dict[Name, int]
) -> Iterator[MicroOperation]:
    """Yield a piece without a name that means another file by a later, durable change."""
    if names.get(given_name(micro), micro.number) == micro.number:
        yield micro
        return
    yield from _loss(micro)
    if isinstance(micro, MoveName):
        yield _without_new_name(micro)
