"""The pieces that a barrier makes durable: the closure of a sync, under one model."""

from __future__ import annotations

from typing import Final, assert_never

from sim.disk.cache.operation import Sync
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    LinkName,
    MicroOperation,
    MoveName,
    SetSize,
    UnlinkName,
    WriteBlock,
    names_of,
)
from sim.disk.crash.ordering import Ordering

NAMED: Final = frozenset((LinkName, MoveName, UnlinkName))


def covered(ordering: Ordering, sync: Sync) -> int:
    """Return the set of pieces that a barrier makes durable.

    A change of a name brings every earlier change of that name, since it cannot become
    durable before them. Otherwise a name that moved from one directory to another and back
    would be lost to the first of the two moves, or reappear at the place that it left.
    """
    if not sync.inode:
        return (1 << len(ordering.micros)) - 1
    before = ordering.order if ordering.model.sync_metadata else ordering.needs
    found = _asked_for(ordering, sync)
    names: set[tuple[int, str]] = set()
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        touched = names_of(micro) if type(micro) in NAMED else ()
        if found >> index & 1 or (touched and not names.isdisjoint(touched)):
            found |= before[index] | 1 << index
            names.update(touched)
    return found


def left_over(ordering: Ordering, durable: int) -> list[MicroOperation]:
    """Return the pieces that stay unsynced, less data that a durable truncation cut off."""
    cuts: dict[int, int] = {}
    left: list[MicroOperation] = []
    for index in range(len(ordering.micros) - 1, -1, -1):
        micro = ordering.micros[index]
        if durable >> index & 1:
            if isinstance(micro, SetSize) and not micro.append:
                cuts[micro.number] = min(micro.size, cuts.get(micro.number, micro.size))
        elif isinstance(micro, WriteBlock) and micro.number in cuts:
            size = max(cuts[micro.number] - micro.offset, 0)
            if size:
                left.append(micro._replace(data=micro.data[:size]))
        else:
            left.append(micro)
    left.reverse()
    return left


def _asked_for(ordering: Ordering, sync: Sync) -> int:
    """Return the pieces that the model promises for a sync, without their predecessors."""
    wanted = 0
    model = ordering.model
    everything = model.sync_metadata and not sync.data_only
    for index, micro in enumerate(ordering.micros):
        own = micro.number == sync.inode
        match micro:
            case CreateInode() | WriteBlock():
                promised = own
            case SetSize(append=append):
                promised = own or (everything and not append)
            case ChangeAttributes():
                promised = everything or (own and not sync.data_only)
            case LinkName() | MoveName():
                promised = everything or _new_directory(micro) == sync.inode
                if own and model.sync_names:
                    promised = True
                    wanted |= _path_to(ordering, micro)
            case UnlinkName():
                promised = everything or micro.directory == sync.inode
            case _:
                assert_never(micro)
        wanted |= promised << index
    return wanted


def _path_to(ordering: Ordering, named: LinkName | MoveName) -> int:
    """Return the pieces that put the directories above this name in their places."""
    pieces = 0
    for place in ordering.places_of(_new_directory(named)):
        pieces |= 1 << place
    return pieces


def _new_directory(named: LinkName | MoveName) -> int:
    return named.to_directory if isinstance(named, MoveName) else named.directory
