"""A power cut, enumerated naively: every subset of the pieces, kept if the order allows it.

This oracle is written from ``docs/disk.md``, section "Models". It shares nothing with
``sim/disk`` but the journal and the models as data. It is slow, and short enough to be
checked by reading. ``StateSpace`` must yield the same states, no more and no fewer.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from sim.disk.cache.operation import DropPages, FailedSync, Operation, Rename, Sync, Unlink, Write
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import (
    Coverage,
    MetadataInOrder,
    PersistenceModel,
    RenameParts,
    StaleBytes,
)
from tests.litmus.naive_barrier import Barrier
from tests.litmus.naive_cut import losses, pieces_of
from tests.litmus.naive_failed import LostData
from tests.litmus.naive_log import waits_for, waits_for_commit
from tests.litmus.naive_order import is_metadata, needs, ordered, unit_of
from tests.litmus.naive_piece import (
    BLOCK,
    SECTOR,
    Change,
    Creation,
    Data,
    Entry,
    Name,
    Node,
    OldTails,
    Piece,
    Platter,
    Size,
    apply,
    copied,
)

Tree = frozenset[tuple[str, int, int, bytes]]
"""A visible disk: path, inode number, mode, content (empty for a directory)."""


class NaiveDisk:
    """A platter and the unsynced pieces above it, under ``model``."""

    def __init__(self, model: PersistenceModel, image: Image) -> None:
        self.model = model
        self.platter: Platter = {}
        for number, inode in image.platter.items():
            content = inode.read(0, inode.size)
            blocks = frozenset(inode.blocks)
            entries = dict(inode.entries)
            self.platter[number] = Node(inode.mode, inode.size, content, entries, blocks)
        self.unsynced: list[Piece] = []
        self.lost = LostData()
        self.unsettled: set[tuple[Entry, int]] = set()
        self.old_tails: OldTails = {}
        self.calls: list[Operation] = []
        self.numbered: dict[int, Operation] = {}

    def advance(self, operation: Operation, call: int) -> None:
        """Read one operation of the journal."""
        renames_are_whole = self._renames_are_whole()
        if renames_are_whole and _is_barrier(operation):
            self._cut_names_again()
        if isinstance(operation, Sync) and self._covers_nothing(operation):
            pass
        elif isinstance(operation, Sync):
            self.lost.sync(operation)
            self.unsynced = self._with_losses_of(operation.inode)
            barrier = Barrier(self.model, operation, self.platter, self.unsynced)
            self.unsettled = barrier.unsettled(self.unsettled)
            self.old_tails = barrier.old_tails(self.old_tails)
            self.unsynced = barrier.carry_out(self.unsettled)
        elif isinstance(operation, FailedSync):
            self.unsynced = self.lost.fail(operation, self.unsynced, self.platter)
        elif isinstance(operation, DropPages):
            self.lost.drop(operation, self.unsynced)
        else:
            whole = replace(self.model, rename_parts=RenameParts.NONE)
            for part in self.lost.parts_of(operation, self.model):
                pieces = self._pieces_of(part, call, whole if renames_are_whole else self.model)
                self.unsynced += self.lost.reaching(pieces, self._with(self.unsynced))
        self.calls.append(operation)
        self.numbered[call] = operation

    def _pieces_of(self, operation: Operation, call: int, model: PersistenceModel) -> list[Piece]:
        return pieces_of(
            operation, call, model, self.platter, self.unsynced, self.unsettled, self.old_tails,
            self.calls,
        )  # fmt: skip

    def _renames_are_whole(self) -> bool:
        """Return whether no rename is in parts because there is no log tree."""
        until_fsync = self.model.metadata_in_order is MetadataInOrder.UNTIL_FSYNC
        some = self.model.rename_parts is RenameParts.SOME
        return until_fsync and some and not self.has_log_tree()

    def _cut_names_again(self) -> None:
        """Cut each unsynced rename and unlink as with a log tree."""
        whole, self.unsynced = self.unsynced, []
        for piece in whole:
            operation = self.numbered[piece.call]
            if isinstance(operation, Rename | Unlink):
                self.unsynced += self._pieces_of(operation, piece.call, self.model)
            else:
                self.unsynced.append(piece)

    def _with_losses_of(self, inode: int) -> list[Piece]:
        """Return the pieces, with the loss of a name by this inode cut off each rename."""
        some = self.model.rename_parts is RenameParts.SOME
        if not (inode and some and self.model.coverage is Coverage.NEEDS):
            return self.unsynced
        cut_off = {
            piece.call
            for piece in self.unsynced
            if isinstance(piece, Name) and piece.change is Change.LOSS and piece.inode == inode
        }
        found: list[Piece] = []
        for piece in self.unsynced:
            if isinstance(piece, Name) and piece.replaced == inode and piece.call not in cut_off:
                assert piece.gives is not None, piece
                found += losses(piece.call, inode, piece.gives)
            found.append(piece)
        return found

    def _covers_nothing(self, sync: Sync) -> bool:
        """Return whether a rename has replaced the file of a barrier, which had no other name."""
        replaced = {
            call.replaced for call in self.calls if isinstance(call, Rename) and not call.links_left
        }
        is_replaced = sync.inode != 0 and sync.inode in replaced
        return is_replaced and self.model.coverage is Coverage.NEEDS

    def trees(self) -> set[Tree]:
        """Return every tree that a power cut now may leave."""
        return {
            self.tree(pieces)
            for survived in self.survivor_sets()
            for pieces in self._damaged(survived)
        }

    def survivor_sets(self) -> Iterator[frozenset[int]]:
        """Yield every set of pieces that contains the predecessors of its members."""
        count = len(self.unsynced)
        before = [{a for a in range(b) if self._must_precede(a, b)} for b in range(count)]
        for bits in product((True, False), repeat=count):
            survived = frozenset(index for index in range(count) if bits[index])
            if all(before[index] <= survived for index in survived):
                yield survived

    def _must_precede(self, first: int, then: int) -> bool:
        model, pieces, log_tree = self.model, self.unsynced, self.has_log_tree()
        if needs(model, pieces, first, then):
            return True
        if ordered(model, pieces, first, then, log_tree=log_tree):
            return True
        until_fsync = model.metadata_in_order is MetadataInOrder.UNTIL_FSYNC
        if not (until_fsync and log_tree):
            return False
        a, b = pieces[first], pieces[then]
        waits = is_metadata(a) and waits_for_commit(self.numbered, b)
        return waits or waits_for(self.numbered, a, b)

    def has_log_tree(self) -> bool:
        """Return whether a barrier on an inode has come since the boot or the last ``sync``."""
        syncs = [call for call in self.calls if isinstance(call, Sync | FailedSync)]
        return bool(syncs) and _is_barrier(syncs[-1])

    def _damaged(self, survived: frozenset[int]) -> Iterator[list[Piece]]:
        """Yield the survivors with every last write torn at every byte, and every stale slice."""
        ways: list[list[Piece | None]] = []
        for index, piece in enumerate(self.unsynced):
            if index in survived:
                ways.append([piece, *self._torn(index, piece, survived)])
            elif isinstance(piece, Data) and self._shows_stale(index, piece, survived):
                ways.append([None, replace(piece, data=_stale(piece))])
        for way in product(*ways):
            yield [piece for piece in way if piece is not None]

    def _torn(self, index: int, piece: Piece, survived: frozenset[int]) -> list[Piece]:
        if not (self.model.torn_units and isinstance(piece, Data)):
            return []
        for later in survived:
            if later > index and self._same_unit(piece, self.unsynced[later]):
                return []
        return [replace(piece, data=piece.data[:kept]) for kept in range(1, len(piece.data))]

    def _same_unit(self, data: Data, other: Piece) -> bool:
        if not isinstance(other, Data) or other.inode != data.inode:
            return False
        return unit_of(self.model, other) == unit_of(self.model, data)

    def _shows_stale(self, index: int, piece: Data, survived: frozenset[int]) -> bool:
        """Return whether the place of a lost write may show earlier bytes of the disk."""
        where = self.model.stale_bytes
        if not piece.appended or where is StaleBytes.NOWHERE:
            return False
        if where is StaleBytes.NEW_BLOCKS and not piece.new_block:
            return False
        return all(
            earlier in survived
            for earlier, other in enumerate(self.unsynced[:index])
            if other.inode == piece.inode
            and (isinstance(other, Creation) or (isinstance(other, Size) and other.is_set))
        )

    def tree(self, pieces: list[Piece]) -> Tree:
        """Return the visible disk after these pieces reached the platter, in program order."""
        return frozenset(_walk("/", 1, self._with(pieces)))

    def cached(self) -> Tree:
        """Return the visible disk after a kill."""
        platter = self._with(self.unsynced)
        self.lost.show(platter)
        return frozenset(_walk("/", 1, platter))

    def _with(self, pieces: list[Piece]) -> Platter:
        platter = copied(self.platter)
        for piece in pieces:
            apply(piece, platter)
        return platter


def _is_barrier(operation: Operation) -> bool:
    """Return whether an operation is a barrier on an inode; a failed one counts as one."""
    return isinstance(operation, FailedSync) or (
        isinstance(operation, Sync) and operation.inode != 0
    )


def killed_trees(
    model: PersistenceModel, image: Image, journal: Sequence[Operation]
) -> Iterator[Tree]:
    """Yield the trees that a kill may leave before, during and after the last operation."""
    *before, last = journal
    parts: list[Operation | None] = [None, last]
    if isinstance(last, Write) and (model.torn_direct_writes or not last.direct):
        ends = (kept for kept in range(1, len(last.data)) if (last.offset + kept) % BLOCK == 0)
        parts += [last._replace(data=last.data[:kept]) for kept in ends]
    for part in parts:
        naive = NaiveDisk(model, image)
        for number, operation in enumerate(before if part is None else [*before, part], 1):
            naive.advance(operation, number)
        yield naive.cached()


def _stale(piece: Data) -> bytes:
    pattern = f"stale {piece.inode}.{piece.offset // SECTOR}\n".encode()
    return (pattern * len(piece.data))[: len(piece.data)]


def _walk(path: str, number: int, platter: Platter) -> Iterator[tuple[str, int, int, bytes]]:
    node = platter[number]
    is_directory = stat.S_ISDIR(node.mode)
    content = b"" if is_directory else node.content[: node.size].ljust(node.size, b"\0")
    yield path, number, node.mode, content
    for name, child in node.entries.items():
        yield from _walk(f"{path.rstrip('/')}/{name}", child, platter)


def tree_of(image: Image) -> Tree:
    """Return the visible disk of an image."""
    return frozenset(
        (path, inode.number, inode.mode, b"" if inode.is_directory else inode.read(0, inode.size))
        for path, inode in image.tree()
    )
