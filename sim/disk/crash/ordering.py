"""The predecessors of unsynced pieces: the relation "must survive before" of one model.

Pieces are numbered from 0 in program order, and a set of pieces is the bits of an integer.
Each piece has two sets of predecessors, both transitively closed:

``needs``
    pieces that must survive with it: a name needs its inode, the second write of a sector the
    first, and under some models a size its data.
``order``
    ``needs``, and the pieces that the model keeps in order before it. A survivor set is
    **legal** if it contains the ``order`` of each of its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.crash.directory_renames import DirectoryRenames, changes_parent
from sim.disk.crash.micro_operation import (
    Arrival,
    ChangeAttributes,
    Content,
    CreateInode,
    ForgetName,
    FreeBlocks,
    GrowSize,
    Growth,
    LinkName,
    MicroOperation,
    MoveName,
    Name,
    NotContent,
    SetSize,
    Size,
    UnlinkName,
    WriteBlock,
    ZeroTail,
    directories_of,
    given_name,
    names_of,
    taken_name,
)
from sim.disk.crash.persistence import (
    DataBeforeSize,
    PersistenceModel,
    RenameParts,
    RenameWaits,
    Truncation,
)
from sim.disk.crash.unsynced_names import UnsyncedNames

Unit = tuple[int, int]
"""A file and a unit of the model in it."""

_NOT_IN_ORDER = (Growth.ALLOCATION, Growth.ALLOCATION_WITHIN, Growth.TRUNCATION)


class Ordering:
    """The unsynced pieces (``micros``) and their predecessors; grows by one piece at a time.

    ``names`` are the names that the pieces give and take. ``truncation_before`` is for each piece
    the last unsynced truncation of its file before it.
    """

    __slots__ = (
        "_allocated", "_arrivals", "_attributes", "_blocks", "_creations", "_data",
        "_directory_renames", "_freed", "_fresh", "_metadata", "_new_directories", "_places",
        "_set_sizes", "_sizes", "_units", "_zeros", "micros", "model", "names", "needs", "order",
        "truncation_before",
    )  # fmt: skip

    def __init__(self, model: PersistenceModel) -> None:
        self.model = model
        self.micros: list[MicroOperation] = []
        self.needs: list[int] = []
        self.order: list[int] = []
        self.truncation_before: list[int | None] = []
        # Indexes of pieces: by inode, by operation, or by a place in a file.
        self._creations: dict[int, int] = {}
        self._units: dict[Unit, int] = {}
        self._blocks: dict[tuple[int, int], list[int]] = {}
        self._set_sizes: dict[int, int] = {}
        self._zeros: dict[int, list[int]] = {}
        self._freed: dict[int, list[tuple[int, int]]] = {}
        self._attributes: dict[int, int] = {}
        self._data: dict[int, list[int]] = {}
        self._sizes: dict[int, list[int]] = {}
        self._fresh: set[tuple[int, int]] = set()
        # For an inode: the number of blocks that allocations have reached. They may be unwritten.
        self._allocated: dict[int, int] = {}
        # The piece by which an operation gives an inode a name.
        self._arrivals: dict[tuple[int, int], int] = {}
        self.names = UnsyncedNames()
        # The last piece that gave each directory a name, and the directories that are new.
        self._places: dict[int, int] = {}
        self._new_directories: set[int] = set()
        self._directory_renames = DirectoryRenames()
        # The set of all pieces that the model keeps in order, with their predecessors.
        self._metadata = 0

    def add(
        self,
        micro: MicroOperation,
        *,
        is_directory: bool = False,
        in_order: bool = False,
        after: tuple[int, int] | None = None,
    ) -> None:
        """Add the next piece; ``is_directory``: it names or moves a directory.

        ``in_order``: it cannot overtake earlier metadata, whatever the model says. ``after`` is a
        rename that it cannot overtake: the operation, and the inode that it moves.
        """
        index = len(self.micros)
        if isinstance(micro, Content):
            units = self._units_of(micro)
            self._append(micro, self._before_content(micro, units), 0)
            self._remember_content(micro, index, units)
        else:
            order = self._metadata_before(in_order, after) if _has_place(micro) else 0
            self._append(micro, self._before(micro, is_directory), order)
            self._remember(micro, index, is_directory)

    def _append(self, micro: MicroOperation, needed: Iterable[int], order: int) -> None:
        """Add a piece that needs the pieces ``needed``, and must come after the set ``order``."""
        all_needs, all_order = self.needs, self.order
        needs = 0
        for before in needed:
            itself = 1 << before
            needs |= all_needs[before] | itself
            order |= all_order[before] | itself
        assert not order >> len(all_order), "a piece follows only earlier ones"
        if self.model.sequential:
            order = (1 << len(all_order)) - 1
        self.truncation_before.append(self._set_sizes.get(micro.number))
        self.micros.append(micro)
        all_needs.append(needs)
        all_order.append(order)

    def _metadata_before(self, in_order: bool, after: tuple[int, int] | None) -> int:
        """Return the set of pieces that metadata follows: all earlier metadata, or a rename."""
        if in_order or self.model.orders_metadata:
            return self._metadata
        index = None if after is None else self._arrivals.get(after)
        return 0 if index is None else self.order[index] | 1 << index

    def creation(self, number: int) -> int | None:
        """Return the index of the piece that creates this inode; None if that is durable."""
        return self._creations.get(number)

    def allocates(self, number: int, block: int) -> bool:
        """Return whether an unsynced write allocates this block of this inode."""
        return (number, block) in self._fresh

    def reaches(self, number: int, size: int, durable: int) -> bool:
        """Return whether a file gets this size by the platter or by an unsynced size.

        ``durable`` is its size on the platter, which counts only without an unsynced truncation.
        """
        known, sizes = self._sizes_of(number, durable)
        return known >= size or any(each == size for each in sizes)

    def extends_to(self, number: int, size: int, durable: int) -> bool:
        """Return whether a file has at least this size if all its unsynced pieces survive.

        ``durable`` as for ``reaches``.
        """
        known, sizes = self._sizes_of(number, durable)
        return known >= size or any(each >= size for each in sizes)

    def _sizes_of(self, number: int, durable: int) -> tuple[int, Iterator[int]]:
        """Return the last size that a truncation sets, else ``durable``, and the unsynced ones.

        Of these the last comes first.
        """
        last = self._set_sizes.get(number, -1)
        if last >= 0:
            truncation = self.micros[last]
            assert isinstance(truncation, SetSize), truncation
            durable = truncation.size
        later = takewhile(lambda index: index > last, reversed(self._sizes.get(number, ())))
        sizes = (self.micros[index] for index in later)
        return durable, (each.size for each in sizes if isinstance(each, Size))

    def new_name_is_unsynced(self, unlink: UnlinkName) -> bool:
        """Return whether the new name is unsynced, if a rename has removed this old name."""
        return (unlink.operation, unlink.number) in self._arrivals

    def durable_name(self, number: int, name: Name) -> Name | None:
        """Return the durable name that an inode left by unsynced renames to ``name``, and lacks."""
        durable = self.names.origin(number, name)
        for micro in reversed(self.micros if durable else ()):
            if micro.number == number and durable in names_of(micro):
                is_given = isinstance(micro, Arrival) and given_name(micro) == durable
                return None if is_given else durable
        return durable

    # -- needs -----------------------------------------------------------------------

    def _before(self, micro: NotContent, is_directory: bool) -> Iterable[int]:
        for inode in (micro.number, *directories_of(micro)):
            if inode in self._creations:
                yield self._creations[inode]
        match micro:
            case GrowSize() | SetSize() | FreeBlocks():
                yield from self._before_size(micro)
            case ChangeAttributes():
                if micro.number in self._attributes:
                    yield self._attributes[micro.number]
            case MoveName():
                yield from self._before_rename(micro, is_directory)
            case UnlinkName() | ForgetName():
                yield from self._before_unlink(micro)
            case CreateInode() | LinkName():
                pass

    def _before_size(self, micro: Size | FreeBlocks) -> Iterable[int]:
        """Yield the last truncation, and the data or zeros for which this size waits."""
        if micro.number in self._set_sizes:
            yield self._set_sizes[micro.number]
        zeros_first = self.model.truncation is Truncation.ZEROS_FIRST
        if isinstance(micro, GrowSize):
            yield from self._data_below(micro)
        elif isinstance(micro, SetSize) and zeros_first and micro.cut != micro.size:
            yield from self._zeros.get(micro.operation, ())

    def _before_content(self, content: Content, written: Sequence[Unit]) -> list[int]:
        number = content.number
        before = []
        if number in self._creations:
            before.append(self._creations[number])
        if isinstance(content, ZeroTail):
            if self.model.truncation is Truncation.APART:
                return before
            if self.model.truncation is Truncation.FREED_LATER and number in self._set_sizes:
                before.append(self._set_sizes[number])
        units = self._units
        before += [units[unit] for unit in written if unit in units]
        if self.model.truncation in {Truncation.ZEROS_FIRST, Truncation.ZEROS_APART}:
            for size, start in self._freed.get(number, ()):
                if _end(content) > start:
                    before.append(size)
        return before

    def _data_below(self, size: GrowSize) -> Iterable[int]:
        """Yield the data of the last block below a size, as far as the model waits for it."""
        waits = self.model.data_before_size
        if waits is DataBeforeSize.NEVER:
            return
        for before in self._blocks.get((size.number, (size.size - 1) // BLOCK_BYTES), ()):
            content = self.micros[before]
            if waits is DataBeforeSize.ALWAYS or (
                isinstance(content, WriteBlock)
                and content.fresh
                and content.operation == size.operation
            ):
                yield before

    def _before_rename(self, move: MoveName, is_directory: bool) -> Iterable[int]:
        if changes_parent(move):
            yield from self.names_of_new(move.to_directory)
        if is_directory:
            yield from self._directory_renames.before(move)
        waits = self.model.rename_waits if move.replaced else RenameWaits.NOTHING
        if waits is RenameWaits.DATA:
            yield from self._data.get(move.number, ())
        sizes = () if waits is RenameWaits.NOTHING else self._sizes.get(move.number, ())
        yield from (index for index in sizes if not self._is_held_back(self.micros[index]))

    def _is_held_back(self, size: MicroOperation) -> bool:
        """Return whether a rename does not write this size: its block was allocated (class E3)."""
        if isinstance(size, GrowSize) and size.cause in {Growth.WRITE, Growth.BLOCK}:
            return _blocks_in(size.size) <= self._allocated.get(size.number, 0)
        return False

    def _before_unlink(self, unlink: UnlinkName | ForgetName) -> Iterable[int]:
        """Yield the name that the same rename made, and the new directories above it."""
        if unlink.moved_to and self.model.rename_parts is not RenameParts.ALL:
            arrival = self._arrivals.get((unlink.operation, unlink.number))
            if arrival is not None:
                yield arrival
            yield from self.names_of_new(unlink.moved_to)

    def names_of_new(self, directory: int) -> Iterable[int]:
        """Yield the names of a directory, and of those above it, as far as they are new.

        A rename never leaves a file without a name, so it does not survive into another
        directory whose own name is lost. Within one directory it may: both names are lost
        with the directory. A directory that only moved is not new: without its last rename it
        has its old name, and the file is below that.
        """
        while directory in self._new_directories:
            index = self._places[directory]
            yield index
            place = self.micros[index]
            assert isinstance(place, Arrival), place
            directory, _ = given_name(place)

    # -- the pieces that later ones follow ------------------------------------------------

    def _remember_content(self, content: Content, index: int, units: Sequence[Unit]) -> None:
        number = content.number
        blocks = range(content.offset // BLOCK_BYTES, (_end(content) - 1) // BLOCK_BYTES + 1)
        if isinstance(content, ZeroTail):
            self._zeros.setdefault(content.operation, []).append(index)
            if self.model.truncation is Truncation.APART:
                return
        for unit in units:
            self._units[unit] = index
        for block in blocks:
            self._blocks.setdefault((number, block), []).append(index)
        if isinstance(content, WriteBlock):
            if content.fresh:
                self._fresh.update((number, block) for block in blocks)
            self._data.setdefault(number, []).append(index)

    def _remember(self, micro: NotContent, index: int, is_directory: bool) -> None:
        number = micro.number
        closed = self.order[index] | 1 << index
        match micro:
            case CreateInode():
                self._creations[number] = index
            case GrowSize(cause=cause):
                self._sizes.setdefault(number, []).append(index)
                if cause in {Growth.ALLOCATION, Growth.ALLOCATION_WITHIN}:
                    allocated = self._allocated.get(number, 0)
                    self._allocated[number] = max(allocated, _blocks_in(micro.size))
            case SetSize():
                self._remember_set_size(micro, index)
            case ChangeAttributes():
                self._attributes[number] = index
                self._metadata |= closed
            case FreeBlocks():
                pass
            case ForgetName():
                self._metadata |= closed
            case LinkName() | UnlinkName() | MoveName():
                self._metadata |= closed
                self._remember_names(micro, index)
                if is_directory and not isinstance(micro, UnlinkName):
                    self._places[number] = index
                    if isinstance(micro, MoveName):
                        self._directory_renames.add(micro, index, self.needs[index])
                    else:
                        self._new_directories.add(number)

    def _remember_set_size(self, micro: SetSize, index: int) -> None:
        number = micro.number
        self._sizes.setdefault(number, []).append(index)
        self._metadata |= self.order[index] | 1 << index
        self._set_sizes[number] = index
        self._allocated[number] = min(self._allocated.get(number, 0), _blocks_in(micro.size))
        if micro.cut is not None:
            start = _blocks_in(micro.cut) * BLOCK_BYTES
            self._freed.setdefault(number, []).append((index, start))

    def _remember_names(self, micro: LinkName | UnlinkName | MoveName, index: int) -> None:
        number = micro.number
        if isinstance(micro, UnlinkName):
            arrival = self._arrivals.get((micro.operation, number))
            if micro.moved_to and arrival is not None:
                linked = self.micros[arrival]
                assert isinstance(linked, LinkName), linked
                self.names.lead(number, taken_name(micro), given_name(linked))
            return
        self._arrivals[micro.operation, number] = index
        creation = self._creations.get(number)
        is_new = creation is not None and self.micros[creation].operation == micro.operation
        left = taken_name(micro) if isinstance(micro, MoveName) else None
        self.names.give(number, given_name(micro), left, is_new=is_new)

    def _units_of(self, content: Content) -> Sequence[Unit]:
        """Return the units that a piece writes to: several if the model has whole calls."""
        unit_bytes = min(self.model.unit_bytes, BLOCK_BYTES)
        if not unit_bytes:
            return [(content.number, 0)]
        first, last = content.offset // unit_bytes, (_end(content) - 1) // unit_bytes
        return [(content.number, unit) for unit in range(first, last + 1)]


def _has_place(micro: NotContent) -> bool:
    """Return whether a piece has a place in the order of metadata."""
    is_apart = isinstance(micro, GrowSize) and micro.cause in _NOT_IN_ORDER
    return not (is_apart or isinstance(micro, CreateInode | FreeBlocks))


def _blocks_in(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES)


def _end(content: Content) -> int:
    return content.end if isinstance(content, ZeroTail) else content.offset + len(content.data)
