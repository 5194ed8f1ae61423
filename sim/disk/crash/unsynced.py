"""What no barrier has covered yet, and the platter beneath it, under one model.

It reads a journal, operation by operation: each leaves micro-operations, each sync moves
those that it covers to the platter. At any moment it can say which survivor sets are
legal, and build the crash image of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.inode_table import Inodes, InodeTable
from sim.disk.cache.key import key_of
from sim.disk.cache.operation import (
    Create,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    SyncFailure,
    Unlink,
    Write,
)
from sim.disk.crash.image import Image
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
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet, legal

_NAMED: Final = frozenset((LinkName, MoveName, UnlinkName))


class Unsynced:
    """Unsynced micro-operations in program order (``micros``), over a platter.

    ``model`` says what they may do; ``platter`` and ``micros`` are what an image carried
    over from the lifetime before.

    Where one file is written while nothing else is unsynced, its writes are kept whole until
    somebody looks: mostly a barrier on it comes first, and nobody asks which sectors there were.
    """

    def __init__(
        self, model: PersistenceModel, platter: Inodes, micros: Iterable[MicroOperation] = ()
    ) -> None:
        self.model = model
        self.table = InodeTable(platter)
        self._whole: list[tuple[Write | Resize, int]] = []
        self._ordering = Ordering(model)
        for micro in micros:
            self._add(micro)

    @property
    def ordering(self) -> Ordering:
        """What is unsynced, with its predecessors."""
        if self._whole:
            whole, self._whole = self._whole, []
            for operation, number in whole:
                self._take(operation, number)
        return self._ordering

    @property
    def micros(self) -> list[MicroOperation]:
        return self.ordering.micros

    @property
    def platter(self) -> Inodes:
        """Everything durable, as an unchanging map."""
        return self.table.rebase()

    @property
    def key(self) -> int:
        """The key of the platter (``key.py``); counted in full only once."""
        platter = self.table.rebase()
        if self.table.key is None:
            self.table.key = key_of(platter.values())
        return self.table.key

    # -- reading the journal -----------------------------------------------------------

    def advance(self, operation: Operation, number: int) -> None:
        """Take operation ``number`` into account."""
        whole = self._whole
        if isinstance(operation, (Write, Resize)):
            if not whole:
                is_alone = not self._ordering.micros
            else:
                is_alone = whole[0][0].inode == operation.inode
            if is_alone:
                whole.append((operation, number))
                return
        elif whole and isinstance(operation, Sync) and operation.inode == whole[0][0].inode:
            self._settle()
            return
        self._take(operation, number)

    def _settle(self) -> None:
        """Put the writes that are kept whole on the platter, in their order."""
        for operation, _ in self._whole:
            inode = self.table.own(operation.inode)
            if isinstance(operation, Write):
                inode.write(operation.offset, operation.data)
                inode.size = max(inode.size, operation.offset + len(operation.data))
            else:
                inode.resize(operation.size)
        self._whole.clear()

    def _take(self, operation: Operation, number: int) -> None:
        match operation:
            case Write():
                self._write(operation, number)
            case Sync():
                self._sync(operation)
            case Create(_, inode, directory, name):
                self._add(CreateInode(number, inode))
                if name:
                    self._add(LinkName(number, inode.number, directory, name))
            case Rename():
                self._rename(operation, number)
            case Unlink(_, inode_number, directory, name):
                self._add(UnlinkName(number, inode_number, directory, name))
            case Link(_, inode_number, directory, name):
                self._add(LinkName(number, inode_number, directory, name))
            case Resize(_, inode_number, size, _):
                self._add(SetSize(number, inode_number, size, append=False))
            case SetAttributes(_, inode_number, mode, uid, gid, atime_ns, mtime_ns):
                self._add(
                    ChangeAttributes(number, inode_number, mode, uid, gid, atime_ns, mtime_ns)
                )
            case FailedSync():
                self._fail_sync(operation)
            case _:
                assert_never(operation)

    def _add(self, micro: MicroOperation) -> None:
        named = type(micro) in _NAMED
        self.ordering.add(micro, is_directory=named and self._is_directory(micro.number))

    def _is_directory(self, number: int) -> bool:
        birth = self.ordering.birth(number)
        born = self.ordering.micros[birth] if birth is not None else None
        inode = born.inode if isinstance(born, CreateInode) else self.table.get(number)
        return inode is not None and inode.is_directory

    def _write(self, write: Write, number: int) -> None:
        """Cut a write into units of data, and an append into the sizes it goes through."""
        start, end = write.offset, write.offset + len(write.data)
        block = BLOCK_BYTES if self.model.unit_bytes else end
        while start < end:
            limit = min(end, (start // block + 1) * block)
            if self.model.sequential:
                self._write_units(write, number, start, limit, unit=block, grows=limit)
            else:
                self._write_units(write, number, start, limit, self.model.unit_bytes, grows=0)
                if limit > write.size:
                    self.ordering.add(SetSize(number, write.inode, limit, append=True))
            start = limit

    def _write_units(
        self, write: Write, number: int, start: int, end: int, unit: int, grows: int
    ) -> None:
        _, inode, offset, data, size = write
        block = start // BLOCK_BYTES
        fresh = block * BLOCK_BYTES >= size or self.ordering.allocates(inode, block)
        while start < end:
            limit = min(end, (start // unit + 1) * unit)
            piece = data[start - offset : limit - offset]
            appended = start >= size
            self.ordering.add(WriteBlock(number, inode, start, piece, fresh, appended, grows))
            start = limit

    def _rename(self, rename: Rename, number: int) -> None:
        _, inode, directory, name, _, to_directory, to_name, replaced = rename
        if self.model.atomic_rename:
            self._add(MoveName(number, inode, directory, name, to_directory, to_name, replaced))
            return
        if replaced:
            self._add(UnlinkName(number, replaced, to_directory, to_name))
        self._add(LinkName(number, inode, to_directory, to_name))
        self._add(UnlinkName(number, inode, directory, name))

    # -- barriers ----------------------------------------------------------------------

    def _sync(self, sync: Sync) -> None:
        micros = self.ordering.micros
        if not micros:
            return
        everything = (1 << len(micros)) - 1
        covered = self.covered(sync) if sync.inode else everything
        if not covered:
            return
        for index, micro in enumerate(micros):
            if covered >> index & 1:
                micro.apply(self.table)
        self._keep(() if covered == everything else self._left_over(covered))

    def covered(self, sync: Sync | FailedSync) -> int:
        """Return the set of micro-operations that this barrier makes durable.

        With the change of a name goes what happened to that name before: it cannot happen
        after it. A name that went from one directory to another and back must not be lost
        to the first half of its way, nor come back where it was taken from.
        """
        ordering = self.ordering
        before = ordering.order if self.model.sync_metadata else ordering.needs
        covered = self._own_of(sync)
        names: set[tuple[int, str]] = set()
        for index in range(len(ordering.micros) - 1, -1, -1):
            micro = ordering.micros[index]
            touched = names_of(micro) if type(micro) in _NAMED else ()
            if covered >> index & 1 or (touched and not names.isdisjoint(touched)):
                covered |= before[index] | 1 << index
                names.update(touched)
        return covered

    def _own_of(self, sync: Sync | FailedSync) -> int:
        wanted = 0
        everything = self.model.sync_metadata and not sync.data_only
        for index, micro in enumerate(self.ordering.micros):
            own = micro.number == sync.inode
            match micro:
                case CreateInode() | WriteBlock():
                    mine = own
                case SetSize(append=append):
                    mine = own or (everything and not append)
                case ChangeAttributes():
                    mine = everything or (own and not sync.data_only)
                case LinkName() | MoveName():
                    mine = everything or _into(micro) == sync.inode
                    if own and self.model.sync_names:
                        mine = True
                        wanted |= self._places(micro)
                case UnlinkName():
                    mine = everything or micro.directory == sync.inode
                case _:
                    assert_never(micro)
            wanted |= mine << index
        return wanted

    def _places(self, named: LinkName | MoveName) -> int:
        """Return what put the directories above this name where they are."""
        directory = named.to_directory if isinstance(named, MoveName) else named.directory
        places = 0
        for place in self.ordering.places_of(directory):
            places |= 1 << place
        return places

    def _left_over(self, covered: int) -> Iterator[MicroOperation]:
        """Yield what is still unsynced; data that a durable truncation cut off is not."""
        cuts: dict[int, int] = {}
        kept: list[MicroOperation] = []
        for index in range(len(self.ordering.micros) - 1, -1, -1):
            micro = self.ordering.micros[index]
            if covered >> index & 1:
                if isinstance(micro, SetSize) and not micro.append:
                    cuts[micro.number] = min(micro.size, cuts.get(micro.number, micro.size))
            elif isinstance(micro, WriteBlock) and micro.number in cuts:
                size = max(cuts[micro.number] - micro.offset, 0)
                if size:
                    kept.append(micro._replace(data=micro.data[:size]))
            else:
                kept.append(micro)
        return reversed(kept)

    def _keep(self, kept: Iterable[MicroOperation]) -> None:
        self._ordering = Ordering(self.model)
        for micro in kept:
            self._add(micro)

    def _fail_sync(self, failed: FailedSync) -> None:
        """Forget the data that the kernel marked clean without having written it."""
        if failed.policy is SyncFailure.LYING:
            return
        self._keep(
            [
                micro
                for micro in self.ordering.micros
                if micro.number != failed.inode
                or not (
                    isinstance(micro, WriteBlock) or (isinstance(micro, SetSize) and micro.append)
                )
            ]
        )

    def carried_over(self, operations: int) -> tuple[MicroOperation, ...]:
        """Return what is unsynced as the next lifetime sees it, after so many operations."""
        return tuple(
            micro._replace(operation=micro.operation - operations) for micro in self.ordering.micros
        )

    # -- crash images ------------------------------------------------------------------

    def crash(self, survivors: SurvivorSet, next_inode: int) -> Image:
        """Return the disk after a power cut that left these survivors.

        Raises ``HarnessError`` if the model does not allow them.
        """
        legal(self.ordering, survivors)
        return Image.of_platter(self._survived(survivors), next_inode)

    def _survived(self, survivors: SurvivorSet) -> Inodes:
        table = InodeTable(self.platter)
        ends: dict[int, int] = {}
        for micro in survivors.applied(self.ordering.micros):
            micro.apply(table)
            if isinstance(micro, WriteBlock):
                ends[micro.number] = max(micro.offset + len(micro.data), ends.get(micro.number, 0))
        for number, end in ends.items():
            if table.own(number).size < end:
                table.own(number).trim()
        return table.rebase()


def _into(micro: LinkName | MoveName) -> int:
    return micro.to_directory if isinstance(micro, MoveName) else micro.directory
