"""The pieces that a barrier makes durable: the closure of a sync, under one model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import assert_never

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import FailedSync, Sync
from sim.disk.crash.micro_operation import (
    Arrival,
    ChangeAttributes,
    CreateInode,
    Departure,
    ForgetName,
    FreeBlocks,
    GrowSize,
    Growth,
    LinkName,
    MicroOperation,
    MoveName,
    Name,
    SetSize,
    UnlinkName,
    WriteBlock,
    ZeroTail,
    directories_of,
    given_name,
    names_of,
    taken_name,
)
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import Coverage, PersistenceModel, SyncedNames


def covered(ordering: Ordering, sync: Sync, is_directory: Callable[[int], bool]) -> int:
    """Return the set of pieces that a barrier makes durable.

    A change of a name brings the earlier changes of that name by the same inode. Otherwise, of
    two renames away from a name and back to it, only the second could be covered, and the first
    one could then take that name away again, or give back the name between them. A new name
    that its file keeps brings the rename that moved a durable file away from that name: btrfs
    logs that file too (``log_conflicting_inodes``). A name that the file of the barrier had only
    for a time brings no directories: it does not reach the platter. The end of a block before or
    in a gap brings only what it needs, and no other metadata before it.
    """
    if not sync.inode:
        return (1 << len(ordering.micros)) - 1
    only_needs = ordering.model.coverage is Coverage.NEEDS
    is_of_file = only_needs and not is_directory(sync.inode)
    passing = _pieces_of_passing_names(ordering, sync.inode) if is_of_file else set[int]()
    found, later = _asked_for(ordering, sync, passing), _Later()
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        has_made_room = _has_made_room(ordering, micro, later)
        if has_made_room or found >> index & 1 or later.has_changed(micro):
            before = ordering.needs if only_needs or is_end_of_block(micro) else ordering.order
            found |= 1 << index | (0 if index in passing else before[index])
            later.add(micro)
    return found


def overtakes(ordering: Ordering, durable: int) -> bool:
    """Return whether one of these pieces becomes durable before a piece that it had to follow."""
    return any(
        durable >> index & 1 and before & ~durable for index, before in enumerate(ordering.order)
    )


class _Later:
    """The changes of names that are covered, collected from the last one backwards.

    ``kept`` has the names that an inode got and did not lose again, each with the inode that
    got it last.
    """

    def __init__(self) -> None:
        self.kept: dict[Name, int] = {}
        # The inodes that changed a name, and those that lost it.
        self._changed: set[tuple[Name, int]] = set()
        self._lost: set[tuple[Name, int]] = set()

    def add(self, micro: MicroOperation) -> None:
        """Add a piece that precedes all that were added."""
        number = micro.number
        if isinstance(micro, Arrival) and (given_name(micro), number) not in self._lost:
            self.kept.setdefault(given_name(micro), number)
        if isinstance(micro, Departure):
            self._lost.add((taken_name(micro), number))
        self._changed |= {(name, number) for name in names_of(micro)}

    def has_changed(self, micro: MicroOperation) -> bool:
        """Return whether the inode of an earlier piece has changed one of its names again."""
        return any((name, micro.number) in self._changed for name in names_of(micro))


def _has_made_room(ordering: Ordering, micro: MicroOperation, later: _Later) -> bool:
    """Return whether a piece moved a file away from a durable name that another file kept."""
    if not isinstance(micro, MoveName):
        return False
    name = taken_name(micro)
    is_kept = later.kept.get(name, micro.number) != micro.number
    return is_kept and _was_durable(ordering, micro.number, name)


def _was_durable(ordering: Ordering, number: int, name: Name) -> bool:
    """Return whether an inode has a name on the platter that an unsynced piece takes from it.

    It has if its first unsynced change of the name is not an arrival.
    """
    first = next(
        micro for micro in ordering.micros if micro.number == number and name in names_of(micro)
    )
    return not (isinstance(first, Arrival) and given_name(first) == name)


def _pieces_of_passing_names(ordering: Ordering, number: int) -> set[int]:
    """Return the pieces of an inode that change no names but those that it got and lost again."""
    own = [(i, each) for i, each in enumerate(ordering.micros) if each.number == number]
    gone, passed = set[Name](), set[tuple[int, Name]]()
    for index, micro in reversed(own):
        if isinstance(micro, Arrival) and given_name(micro) in gone:
            passed.add((index, given_name(micro)))
        if isinstance(micro, Departure):
            gone.add(taken_name(micro))
    arrived = set[Name]()
    for index, micro in own:
        if isinstance(micro, Departure) and taken_name(micro) in arrived:
            passed.add((index, taken_name(micro)))
            arrived.discard(taken_name(micro))
        if isinstance(micro, Arrival):
            arrived.add(given_name(micro))
    return {
        index for index, micro in own
        if (names := names_of(micro)) and all((index, name) in passed for name in names)
    }  # fmt: skip


def _asked_for(ordering: Ordering, sync: Sync, passing: set[int]) -> int:
    """Return the pieces that the model guarantees for a sync, without their predecessors."""
    wanted = 0
    everything = ordering.model.coverage is Coverage.EVERYTHING and not sync.data_only
    for index, micro in enumerate(ordering.micros):
        own = micro.number == sync.inode
        match micro:
            case CreateInode() | WriteBlock() | ZeroTail() | FreeBlocks():
                guaranteed = own and is_in_pages_of(sync, micro)
            case GrowSize():
                in_pages = is_in_pages_of(sync, micro) or _has_its_data(ordering, index, wanted)
                is_left = sync.data_only and micro.cause is Growth.TRUNCATION
                guaranteed = own and in_pages and not is_left
            case SetSize():
                guaranteed = own or everything
            case ChangeAttributes():
                guaranteed = everything or (own and not sync.data_only)
            case LinkName() | MoveName():
                guaranteed = everything or _is_of(micro, sync.inode, ordering.model)
                if own and _syncs_name(ordering, micro, sync):
                    guaranteed = True
                    if index not in passing:
                        wanted |= _path_to(ordering, micro)
            case ForgetName():
                guaranteed = own and _syncs_name(ordering, micro, sync)
            case UnlinkName():
                guaranteed = everything or _is_removal_of(micro, sync.inode, ordering)
                # The removal by an unlink belongs to the directory only.
                belongs_to_file = own and (micro.moved_to or index in passing)
                if belongs_to_file and _syncs_name(ordering, micro, sync):
                    guaranteed = True
            case _:
                assert_never(micro)
        wanted |= guaranteed << index
    return wanted


def _has_its_data(ordering: Ordering, index: int, wanted: int) -> bool:
    """Return whether a barrier covers the data that ends at the size at ``index``.

    That data may begin in an earlier page, if the model has whole calls.
    """
    if not index or not wanted >> (index - 1) & 1:
        return False
    data, size = ordering.micros[index - 1 : index + 1]
    if not (isinstance(size, GrowSize) and isinstance(data, WriteBlock)):
        return False
    # A failed barrier may have lost the end of the data, and not its size.
    ends_there = data.offset + len(data.data) == size.size
    return size.cause is Growth.WRITE and data.operation == size.operation and ends_there


def is_end_of_block(micro: MicroOperation) -> bool:
    """Return whether a piece is a size that no call gave the file: the end of a block."""
    return isinstance(micro, GrowSize) and micro.cause is Growth.BLOCK


def pages_of(sync: Sync | FailedSync) -> tuple[int, int]:
    """Return the first byte of the pages that a barrier was called for, and the end of the last."""
    if not sync.end:
        return 0, sys.maxsize
    return sync.start // BLOCK_BYTES * BLOCK_BYTES, -(-sync.end // BLOCK_BYTES) * BLOCK_BYTES


def is_in_pages_of(sync: Sync | FailedSync, micro: MicroOperation) -> bool:
    """Return whether a barrier on a file covers this piece of it.

    One on some of its pages leaves data, zeros and sizes of writes in the others.
    """
    match micro:
        case WriteBlock():
            start, end = micro.offset, micro.offset + len(micro.data)
        case ZeroTail():
            start, end = micro.offset, micro.end
        case GrowSize(cause=Growth.BLOCK):
            return not sync.end
        case GrowSize(cause=Growth.WRITE | Growth.ALLOCATION_WITHIN):
            start, end = micro.size - 1, micro.size
        case _:
            return True
    first, last = pages_of(sync)
    return start < last and first < end


def _is_of(micro: LinkName | MoveName, directory: int, model: PersistenceModel) -> bool:
    """Return whether a barrier on ``directory`` covers this change of its entries."""
    if model.coverage is Coverage.NEEDS:
        return given_name(micro)[0] == directory
    return directory in directories_of(micro)


def _is_removal_of(unlink: UnlinkName, directory: int, ordering: Ordering) -> bool:
    """Return whether a barrier on this directory covers the removal of a name from it.

    Where only barriers on directories cover names, a file does not leave its old directory
    before a barrier on the new one has covered its new name.
    """
    if unlink.directory != directory:
        return False
    waits = ordering.model.synced_names is SyncedNames.NEVER
    return not (waits and ordering.new_name_is_unsynced(unlink))


def _syncs_name(
    ordering: Ordering, micro: LinkName | MoveName | UnlinkName | ForgetName, sync: Sync
) -> bool:
    """Return whether a barrier on a file covers this change of its names."""
    synced = ordering.model.synced_names
    if synced is SyncedNames.FSYNC and sync.data_only:
        creation = ordering.creation(micro.number)
        return creation is not None and ordering.micros[creation].operation == micro.operation
    return synced is not SyncedNames.NEVER


def _path_to(ordering: Ordering, named: LinkName | MoveName) -> int:
    """Return the names of the directories above this name, as far as they are new."""
    pieces = 0
    for place in ordering.names_of_new(given_name(named)[0]):
        pieces |= 1 << place
    return pieces
