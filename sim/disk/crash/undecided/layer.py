"""Layers: the pieces of one lifetime at its crash, indexed by the place that they change.

A layer is immutable and shared by all boxes of a crash point. Its first ``durable`` pieces
have reached the platter; the others are unsynced, and each is decided by ``Progress``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.disk.crash.beyond_end import Ends, ends_of
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    Content,
    CreateInode,
    ForgetName,
    FreeBlocks,
    GrowSize,
    LinkName,
    MicroOperation,
    MoveName,
    Name,
    SetSize,
    UnlinkName,
    WriteBlock,
)
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.survivor_set import can_be_stale, is_tearable, members
from sim.errors import NeedsWholeImage


class Layer:
    """The pieces of one lifetime, in the order in which they reach the platter.

    ``order`` and ``followers`` are for each piece the sets of those that must survive before
    it, and of those that cannot survive without it, as the bits of an integer. ``neighbours``
    has both, and the pieces that ``stale`` connects with it. ``lengths`` has the number of
    bytes of each piece that can be torn, and 1 for every other. ``stale`` has the pieces in
    whose place stale bytes may show, each with the pieces that must survive for that.

    ``cells``, ``sizes``, ``contents``, ``attributes`` and ``arrivals`` have the pieces that
    change a name, the size, the bytes or the attributes of an inode, or give a name to it;
    ``creations`` those that create it. ``names`` has the names of a directory among ``cells``.
    ``ends`` has the files of which the next boot drops bytes beyond the end.
    """

    __slots__ = (
        "arrivals", "attributes", "cells", "contents", "creations", "durable", "ends",
        "followers", "lengths", "micros", "names", "neighbours", "order", "sizes", "stale",
    )  # fmt: skip

    def __init__(self, durable: Sequence[MicroOperation], ordering: Ordering) -> None:
        if ordering.model.torn_units and ordering.order != ordering.needs:
            raise NeedsWholeImage("torn pieces of a model that keeps more in order than it needs")
        self.durable = len(durable)
        self.micros: list[MicroOperation] = [*durable, *ordering.micros]
        on_platter = (1 << self.durable) - 1
        self.order = [(1 << index) - 1 for index in range(self.durable)]
        self.order += [on_platter | before << self.durable for before in ordering.order]
        self.followers = _followers(self.order)
        self.lengths = [1] * self.durable
        self.lengths += [_length(micro, ordering.model) for micro in ordering.micros]
        self.stale = {
            self.durable + index: self._needed_by_stale(ordering, index)
            for index in range(len(ordering.micros))
            if can_be_stale(ordering, ~(1 << index), index)
        }
        self.neighbours = [a | b for a, b in zip(self.order, self.followers, strict=True)]
        for piece, needed in self.stale.items():
            for index in needed:
                self.neighbours[piece] |= 1 << index
                self.neighbours[index] |= 1 << piece
        self.cells: dict[Name, list[int]] = {}
        self.names: dict[int, dict[str, None]] = {}
        self.sizes: dict[int, list[int]] = {}
        self.contents: dict[int, list[int]] = {}
        self.attributes: dict[int, list[int]] = {}
        self.arrivals: dict[int, list[int]] = {}
        self.creations: dict[int, int] = {}
        self.ends: Ends = ends_of(self.micros, {})
        for index, micro in enumerate(self.micros):
            self._index(index, micro)

    def _needed_by_stale(self, ordering: Ordering, index: int) -> list[int]:
        creation = ordering.creation(ordering.micros[index].number)
        needed = (creation, ordering.truncation_before[index])
        return [self.durable + each for each in needed if each is not None]

    def _index(self, index: int, micro: MicroOperation) -> None:
        number = micro.number
        match micro:
            case CreateInode():
                self.creations[number] = index
            case ChangeAttributes():
                self.attributes.setdefault(number, []).append(index)
            case LinkName() | UnlinkName() | ForgetName() | MoveName():
                self._index_names(index, micro)
            case GrowSize():
                self.sizes.setdefault(number, []).append(index)
            case SetSize():
                self.sizes.setdefault(number, []).append(index)
                if micro.cut is not None or micro.tail:
                    self.contents.setdefault(number, []).append(index)
            case _:
                assert isinstance(micro, Content | FreeBlocks), micro
                self.contents.setdefault(number, []).append(index)
                if isinstance(micro, WriteBlock) and micro.grows:
                    self.sizes.setdefault(number, []).append(index)

    def _index_names(
        self, index: int, micro: LinkName | UnlinkName | ForgetName | MoveName
    ) -> None:
        cells: list[Name] = [(micro.directory, micro.name)]
        if isinstance(micro, MoveName):
            cells.append((micro.to_directory, micro.to_name))
        for directory, name in cells:
            self.cells.setdefault((directory, name), []).append(index)
            self.names.setdefault(directory, {})[name] = None
        if isinstance(micro, LinkName | MoveName):
            self.arrivals.setdefault(micro.number, []).append(index)


def _length(micro: MicroOperation, model: PersistenceModel) -> int:
    return len(micro.data) if is_tearable(micro, model) else 1


def _followers(order: Sequence[int]) -> list[int]:
    """Return for each piece the pieces whose predecessor it is."""
    found = [0] * len(order)
    for index, pieces in enumerate(order):
        for before in members(pieces):
            found[before] |= 1 << index
    return found
