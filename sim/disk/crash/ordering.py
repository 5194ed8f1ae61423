"""The predecessors of unsynced pieces: the relation "must survive before" of one model.

Pieces are numbered from 0 in program order, and a set of pieces is the bits of an integer.
Each piece has two sets of predecessors, both transitively closed:

``needs``
    pieces without which it is meaningless, under any model: a name needs its inode, the
    second write of a sector needs the first.
``order``
    ``needs``, and the pieces that the model keeps in order before it. A survivor set is
    **legal** if it contains the ``order`` of each of its members.
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    LinkName,
    MicroOperation,
    MoveName,
    SetSize,
    UnlinkName,
    WriteBlock,
    directories_of,
)
from sim.disk.crash.persistence import (
    DataBeforeSize,
    DirectoryOrder,
    PersistenceModel,
    TruncateOrder,
)

_NoData = CreateInode | SetSize | LinkName | UnlinkName | MoveName | ChangeAttributes


class Ordering:
    """The unsynced pieces (``micros``) and their predecessors; grows by one piece at a time.

    ``truncation`` is for each piece the last unsynced truncation of its file before it.
    """

    __slots__ = (
        "_attributes",
        "_content",
        "_creations",
        "_directories",
        "_directory_move",
        "_fresh",
        "_metadata",
        "_new",
        "_placed",
        "_sizes",
        "_truncations",
        "_units",
        "micros",
        "model",
        "needs",
        "order",
        "truncation",
    )  # fmt: skip

    def __init__(self, model: PersistenceModel) -> None:
        self.model = model
        self.micros: list[MicroOperation] = []
        self.needs: list[int] = []
        self.order: list[int] = []
        self.truncation: list[int | None] = []
        self._creations: dict[int, int] = {}
        self._units: dict[tuple[int, int], int] = {}
        self._sizes: dict[int, int] = {}
        self._truncations: dict[int, int] = {}
        self._attributes: dict[int, int] = {}
        self._content: dict[int, list[int]] = {}
        self._fresh: set[tuple[int, int]] = set()
        self._placed: dict[int, int] = {}
        self._new: set[int] = set()
        self._directory_move = -1
        self._directories: dict[int, int] = {}
        self._metadata = 0

    def add(self, micro: MicroOperation, *, is_directory: bool = False) -> None:
        """Add the next piece; ``is_directory``: it names or moves a directory."""
        index = len(self.micros)
        if isinstance(micro, WriteBlock):
            self._append(micro, self._before_data(micro), 0)
            self._remember_data(micro, index)
        else:
            direct = self._direct(micro, index, is_directory)
            self._append(micro, direct, self._by_directory_order(micro))
            self._remember(micro, index, is_directory)

    def _append(self, micro: MicroOperation, direct: Iterable[int], order: int) -> None:
        """Add a piece whose predecessors are ``direct`` and the set ``order``, with theirs."""
        all_needs, all_order = self.needs, self.order
        needs = 0
        for before in direct:
            itself = 1 << before
            needs |= all_needs[before] | itself
            order |= all_order[before] | itself
        if self.model.sequential:
            order = (1 << len(all_order)) - 1
        self.truncation.append(self._truncations.get(micro.number))
        self.micros.append(micro)
        all_needs.append(needs)
        all_order.append(order)

    def creation(self, number: int) -> int | None:
        """Return the index of the piece that creates this inode; None if that is durable."""
        return self._creations.get(number)

    def allocates(self, number: int, block: int) -> bool:
        """Return whether an unsynced write allocates this block of this inode."""
        return (number, block) in self._fresh

    # -- needs -----------------------------------------------------------------------

    def _direct(self, micro: _NoData, index: int, is_directory: bool) -> Iterable[int]:
        number = micro.number
        for inode in (number, *directories_of(micro)):
            if inode in self._creations:
                yield self._creations[inode]
        match micro:
            case SetSize():
                if number in self._sizes:
                    yield self._sizes[number]
                if micro.append:
                    yield from self._data_of_append(micro, index)
            case ChangeAttributes():
                if number in self._attributes:
                    yield self._attributes[number]
            case MoveName():
                yield from self._before_rename(micro, is_directory)
            case CreateInode() | LinkName() | UnlinkName():
                pass

    def _before_data(self, block: WriteBlock) -> list[int]:
        number = block.number
        before = []
        if number in self._creations:
            before.append(self._creations[number])
        unit = self._unit(block)
        if unit in self._units:
            before.append(self._units[unit])
        if number in self._truncations and self.model.truncate_order is not TruncateOrder.NONE:
            before.append(self._truncations[number])
        return before

    def _data_of_append(self, size: SetSize, index: int) -> Iterable[int]:
        """Yield the data that the same call wrote below this size, if the model waits for it."""
        waits = self.model.data_before_size
        if waits is DataBeforeSize.NEVER:
            return
        start = (size.size - 1) // BLOCK_BYTES * BLOCK_BYTES
        for before in range(index - 1, -1, -1):
            block = self.micros[before]
            if not (
                isinstance(block, WriteBlock)
                and block.operation == size.operation
                and block.number == size.number
                and block.offset >= start
            ):
                return
            if waits is DataBeforeSize.ALWAYS or block.fresh:
                yield before

    def _before_rename(self, move: MoveName, is_directory: bool) -> Iterable[int]:
        if move.directory != move.to_directory:
            yield from self._names_of_new(move.to_directory)
        if is_directory and self._directory_move >= 0:
            yield self._directory_move
        waits = self.model.rename_over_waits if move.replaced else self.model.rename_new_waits
        if waits:
            yield from self._content.get(move.number, ())

    def places_of(self, directory: int) -> Iterable[int]:
        """Yield the unsynced pieces that put a directory, and those above it, in their places."""
        while directory in self._placed:
            index = self._placed[directory]
            yield index
            place = self.micros[index]
            directory = place.to_directory if isinstance(place, MoveName) else _holder(place)

    def _names_of_new(self, directory: int) -> Iterable[int]:
        """Yield the names of a directory, and of those above it, as far as they are new.

        A rename never leaves a file without a name, so it does not survive into another
        directory that has none. Within one directory the question does not arise: both names
        are lost with it. A directory that only moved keeps its old name (mutant R18).
        """
        for index in self.places_of(directory):
            if self.micros[index].number not in self._new:
                return
            yield index

    # -- order -------------------------------------------------------------------------

    def _by_directory_order(self, micro: _NoData) -> int:
        order = self.model.directory_order
        if order is DirectoryOrder.ALL:
            return 0 if isinstance(micro, CreateInode) else self._metadata
        if order is DirectoryOrder.SAME:
            before = 0
            for directory in directories_of(micro):
                before |= self._directories.get(directory, 0)
            return before
        return 0

    def _remember_data(self, block: WriteBlock, index: int) -> None:
        self._units[self._unit(block)] = index
        if block.fresh:
            self._fresh.add((block.number, block.offset // BLOCK_BYTES))
        self._content.setdefault(block.number, []).append(index)

    def _remember(self, micro: _NoData, index: int, is_directory: bool) -> None:
        number = micro.number
        closed = self.order[index] | 1 << index
        match micro:
            case CreateInode():
                self._creations[number] = index
            case SetSize():
                self._sizes[number] = index
                self._content.setdefault(number, []).append(index)
                if not micro.append:
                    self._truncations[number] = index
                    if self.model.truncate_order is TruncateOrder.METADATA:
                        self._metadata |= closed
            case ChangeAttributes():
                self._attributes[number] = index
                self._metadata |= closed
            case LinkName() | UnlinkName() | MoveName():
                self._metadata |= closed
                for directory in directories_of(micro):
                    self._directories[directory] = self._directories.get(directory, 0) | closed
                if is_directory and not isinstance(micro, UnlinkName):
                    self._placed[number] = index
                    if isinstance(micro, MoveName):
                        self._directory_move = index
                    else:
                        self._new.add(number)

    def _unit(self, block: WriteBlock) -> tuple[int, int]:
        unit_bytes = self.model.unit_bytes
        return block.number, block.offset // unit_bytes if unit_bytes else 0


def _holder(place: MicroOperation) -> int:
    assert isinstance(place, LinkName)
    return place.directory
