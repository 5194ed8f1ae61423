"""The pieces that a barrier makes durable: ``docs/disk.md``, "Barriers"."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sim.disk.cache.operation import Sync
from sim.disk.crash.persistence import Coverage, PersistenceModel, SyncedNames
from tests.litmus.naive_cut import is_directory_now, loser_of, losses
from tests.litmus.naive_order import is_metadata, names_of_new, needs, ordered
from tests.litmus.naive_piece import (
    BLOCK,
    Attributes,
    Change,
    Creation,
    Data,
    Entry,
    Freeing,
    Name,
    OldTails,
    Piece,
    Platter,
    Size,
    Sized,
    Zeros,
    apply,
    copied,
    has_name,
)


class Barrier:
    """One barrier on a platter with unsynced pieces above it."""

    def __init__(
        self, model: PersistenceModel, sync: Sync, platter: Platter, pieces: list[Piece]
    ) -> None:
        self.model = model
        self.sync = sync
        self.platter = platter
        self.pieces = pieces
        self._noted_by = -1
        self.covered = {index for index in range(len(pieces)) if self._own(index)}
        self._add_those_that_come_along()

    # -- the pieces that it covers ---------------------------------------------------------

    def _own(self, index: int) -> bool:
        """Return whether a piece belongs to the inode of the barrier."""
        piece, sync, coverage = self.pieces[index], self.sync, self.model.coverage
        if not sync.inode:
            return True
        if coverage is Coverage.EVERYTHING and not sync.data_only and is_metadata(piece):
            return True
        if isinstance(piece, Name):
            return self._own_directory(piece) or self._own_name(piece) or index in self._above()
        if isinstance(piece, Attributes) and sync.data_only:
            return False
        if isinstance(piece, Size) and piece.sized is Sized.SAME and sync.data_only:
            return False
        return piece.inode == sync.inode and self._has_its_pages(piece)

    def _has_its_pages(self, piece: Piece) -> bool:
        """Return whether the barrier covers the pages of data, of zeros, or of a size of a write.

        That of a synchronous write covers the pages that the write touched.
        """
        if not self.sync.end:
            return True
        pages = range(self.sync.start // BLOCK, (self.sync.end - 1) // BLOCK + 1)
        match piece:
            case Data():
                touched = range(piece.offset, piece.offset + len(piece.data))
            case Zeros():
                touched = range(piece.offset, piece.offset + piece.length)
            case Size(sized=Sized.BLOCK):
                return False
            case Size(sized=Sized.WRITE | Sized.WITHIN):
                touched = range(piece.size - 1, piece.size)
            case _:
                return True
        return any(byte // BLOCK in pages for byte in touched)

    def _own_directory(self, piece: Name) -> bool:
        """Return whether a name appears in the directory of the barrier or disappears from it."""
        if piece.change is Change.DURABLE_NAME:
            return False
        if piece.change is Change.OLD_NAME and self._waits_for_new_name(piece):
            return False
        if self.model.coverage is Coverage.NEEDS and piece.gives is not None:
            return piece.gives[0] == self.sync.inode
        return self.sync.inode in piece.directories

    def _waits_for_new_name(self, old_name: Name) -> bool:
        """Return whether a rename does not belong to its old directory yet."""
        return self.model.synced_names is SyncedNames.NEVER and any(
            isinstance(piece, Name) and piece.call == old_name.call and piece.gives is not None
            for piece in self.pieces
        )

    def _own_name(self, piece: Name) -> bool:
        """Return whether a name of the inode is durable by a barrier on the inode."""
        if piece.inode != self.sync.inode:
            return False
        if piece.change in (Change.UNLINK, Change.LOSS) and not self._only_passing(piece):
            return False
        match self.model.synced_names:
            case SyncedNames.FSYNC_AND_FDATASYNC:
                return True
            case SyncedNames.FSYNC if self.sync.data_only:
                created = any(
                    isinstance(other, Creation) and other.inode == piece.inode
                    for other in self.pieces
                )
                return piece.change is Change.CREATE and created
            case SyncedNames.FSYNC:
                return True
            case SyncedNames.NEVER:
                return False

    def _above(self) -> set[int]:
        """Return the new names of the directories above the own names of the inode."""
        above: set[int] = set()
        for piece in self.pieces:
            if not isinstance(piece, Name) or self._only_passing(piece):
                continue
            if self._own_name(piece) and piece.gives is not None:
                above |= set(names_of_new(self.pieces, piece.gives[0], len(self.pieces)))
        return above

    def _add_those_that_come_along(self) -> None:
        before = set[int]()
        while before != self.covered:
            before = set(self.covered)
            for then in range(len(self.pieces) - 1, -1, -1):
                if then in self.covered:
                    self.covered |= {
                        first for first in range(then) if self._comes_along(first, then)
                    }

    def _comes_along(self, first: int, then: int) -> bool:
        a, b = self.pieces[first], self.pieces[then]
        brings_needs = not (isinstance(b, Name) and self._only_passing(b))
        if brings_needs and needs(self.model, self.pieces, first, then):
            return True
        is_end_of_block = isinstance(b, Size) and b.sized is Sized.BLOCK
        in_order = self.model.coverage is not Coverage.NEEDS and not is_end_of_block
        if in_order and ordered(self.model, self.pieces, first, then, log_tree=True):
            return True
        if not (isinstance(a, Name) and isinstance(b, Name)):
            return False
        if Change.DURABLE_NAME in (a.change, b.change):
            return False
        if a.inode == b.inode:
            return not a.entries.isdisjoint(b.entries)
        return self._makes_room(a, then, b)

    def _makes_room(self, a: Name, then: int, b: Name) -> bool:
        """Return whether a rename moved a file away from a durable name that another one kept."""
        return (
            a.inode != b.inode
            and a.change is Change.RENAME
            and a.takes is not None
            and a.takes == b.gives
            and not self._passing(then, b)
            and has_name(self.platter, a.takes, a.inode)
        )

    def _only_passing(self, piece: Name) -> bool:
        """Return whether the file of the barrier had all names of this piece only for a time.

        It got and lost them by unsynced changes, so they bring no directories.
        """
        if (
            self.model.coverage is not Coverage.NEEDS
            or piece.inode != self.sync.inode
            or piece.is_directory
            or piece.change is Change.DURABLE_NAME
        ):
            return False
        own = [
            other
            for other in self.pieces
            if isinstance(other, Name)
            and other.inode == piece.inode
            and other.change is not Change.DURABLE_NAME
        ]
        place = own.index(piece)
        is_lost = piece.gives is None or any(
            other.takes == piece.gives for other in own[place + 1 :]
        )
        before = [other for other in own[:place] if piece.takes in (other.gives, other.takes)]
        was_given = piece.takes is None or (bool(before) and before[-1].gives == piece.takes)
        return is_lost and was_given

    def _passing(self, index: int, piece: Name) -> bool:
        """Return whether a later covered piece takes the name away that this one gives."""
        return self.model.coverage is Coverage.NEEDS and any(
            other.inode == piece.inode and other.takes == piece.gives
            for later, other in enumerate(self.pieces)
            if later > index and later in self.covered and isinstance(other, Name)
        )

    # -- the platter after it ---------------------------------------------------------------

    def carry_out(self, unsettled: Collection[tuple[Entry, int]]) -> list[Piece]:
        """Change the platter, and return the pieces that are left unsynced."""
        left: list[Piece] = []
        for index, piece in enumerate(self.pieces):
            if index in self.covered:
                left += self._split_loss(index, piece)
            else:
                left += self._adapted(index)
        for index in sorted(self.covered):
            self._make_durable(index)
        return self._with_returns(left, unsettled)

    def _with_returns(
        self, left: list[Piece], unsettled: Collection[tuple[Entry, int]]
    ) -> list[Piece]:
        """Return the pieces that are left; some of them give a name back to its former holder.

        Such a piece takes a name from the file that has it now, and the barrier has covered that
        name without being on its directory.
        """
        inode = self.sync.inode
        if self.model.coverage is not Coverage.NEEDS or not inode:
            return left
        if is_directory_now(inode, self.platter, self.pieces):
            return left
        found: list[Piece] = []
        for piece in left:
            loser = self._gets_back(piece, found, unsettled) if isinstance(piece, Name) else 0
            if isinstance(piece, Name) and piece.takes is not None and loser:
                found.append(replace(piece, returns_to=loser))
                found += losses(piece.call, loser, piece.takes)
            else:
                found.append(piece)
        return found

    def _gets_back(
        self, piece: Name, before: list[Piece], unsettled: Collection[tuple[Entry, int]]
    ) -> int:
        """Return the file to which a piece that is left gives a name back, or 0."""
        if piece.takes is None or piece.returns_to:
            return 0
        if piece.inode == self.sync.inode or not self._covers_alone(piece.inode, piece.takes):
            return 0
        return loser_of(piece.takes, piece.inode, self.platter, before, unsettled)

    def _covers_alone(self, inode: int, entry: Entry) -> bool:
        """Return whether the barrier covers a name of a file, and is not on its directory."""
        return entry[0] != self.sync.inode and any(
            piece.inode == inode
            and piece.gives == entry
            and not piece.is_directory
            and not self._passing(index, piece)
            for index, piece in enumerate(self.pieces)
            if index in self.covered and isinstance(piece, Name)
        )

    def _make_durable(self, index: int) -> None:
        piece = self.pieces[index]
        if isinstance(piece, Name) and piece.gives is not None and self._passing(index, piece):
            if piece.replaced and not self._leaves_loss(piece):
                apply(
                    Name(piece.call, piece.replaced, Change.LOSS, takes=piece.gives), self.platter
                )
            piece = replace(piece, gives=None)
        apply(piece, self.platter)

    def _leaves_loss(self, piece: Name) -> bool:
        """Return whether a rename is covered without the loss of the name that it took."""
        return (
            self.model.coverage is Coverage.NEEDS
            and self.sync.inode != 0
            and piece.replaced != 0
            and not piece.is_directory
            and piece.gives is not None
            and piece.gives[0] != self.sync.inode
        )

    def _split_loss(self, index: int, piece: Piece) -> list[Piece]:
        if not isinstance(piece, Name) or not self._leaves_loss(piece):
            return []
        if piece.replaced not in self._kept_later(index, piece.gives):
            return [Name(piece.call, piece.replaced, Change.LOSS, takes=piece.gives)]
        return []

    def _adapted(self, index: int) -> list[Piece]:
        """Return the parts of a piece that no later durable piece made obsolete."""
        piece = self.pieces[index]
        if isinstance(piece, Name):
            return self._adapted_name(index, piece)
        sizes = [
            size for later, size in enumerate(self.pieces)
            if later > index and later in self.covered and size.inode == piece.inode
            and isinstance(size, Size) and size.is_set
        ]  # fmt: skip
        if isinstance(piece, Size) and sizes:
            return []
        if isinstance(piece, Data):
            end = piece.offset + len(piece.data)
            drops = [size.drops_from for size in sizes if size.drops_from >= 0]
            drops += [
                freeing.drops_from for later, freeing in enumerate(self.pieces)
                if later > index and later in self.covered and freeing.inode == piece.inode
                and isinstance(freeing, Freeing)
            ]  # fmt: skip
            kept = min([end, *drops]) - piece.offset
            return [replace(piece, data=piece.data[:kept])] if kept > 0 else []
        return [piece]

    def _adapted_name(self, index: int, piece: Name) -> list[Piece]:
        if piece.gives is None:
            return [] if piece.inode in self._kept_later(index, piece.takes) else [piece]
        kept = self._kept_later(index, piece.gives)
        if not kept - {piece.inode}:
            return [piece]
        remainder: list[Piece] = []
        if piece.replaced and piece.replaced not in kept:
            remainder.append(Name(piece.call, piece.replaced, Change.LOSS, takes=piece.gives))
        if piece.takes is not None:
            remainder.append(replace(piece, change=Change.OLD_NAME, gives=None, replaced=0))
        return remainder

    def _kept_later(self, index: int, entry: Entry | None) -> set[int]:
        """Return the files to which later durable changes gave a name that they kept."""
        return {
            piece.inode
            for later, piece in enumerate(self.pieces)
            if later > index and later in self.covered and isinstance(piece, Name)
            and piece.gives is not None and piece.gives == entry
            and not self._passing(later, piece)
        }  # fmt: skip

    def old_tails(self, before: OldTails) -> OldTails:
        """Return the bytes that truncations have left behind the end of files by now.

        To be called before the pieces are carried out.
        """
        if self.model.coverage is not Coverage.NEEDS or not self.sync.inode:
            return before if self.sync.inode else {}
        kept, left, platter = dict(before), OldTails(), copied(self.platter)
        for index in sorted(self.covered):
            piece = self.pieces[index]
            set_size = isinstance(piece, Size) and piece.is_set
            if isinstance(piece, Data | Zeros) or set_size:
                kept = {key: tail for key, tail in kept.items() if key[0] != piece.inode}
                noted = {key: tail for key, tail in left.items() if key[0] == piece.inode}
                left = {key: tail for key, tail in left.items() if key not in noted}
                left |= self._left_tail(piece, noted, platter)
            if not isinstance(piece, Name):
                apply(piece, platter)
        return kept | left

    def _left_tail(self, piece: Piece, noted: OldTails, platter: Platter) -> OldTails:
        """Return the old tail after a write (none), or after a part of a truncation.

        ``noted`` is the one that an earlier piece of this barrier has left.
        """
        if isinstance(piece, Data) or piece.inode not in platter:
            return {}
        parts = [
            part
            for part in self.pieces
            if part.call == piece.call and isinstance(part, Zeros | Size)
        ]
        if any(isinstance(part, Size) and part.freed_from < 0 for part in parts):
            return noted
        size = min(part.offset if isinstance(part, Zeros) else part.size for part in parts)
        if (piece.inode, size) in noted and self._noted_by == piece.call:
            return noted
        self._noted_by = piece.call
        node = platter[piece.inode]
        if size >= node.size:
            return {}
        block_end = (size + BLOCK - 1) // BLOCK * BLOCK
        return {(piece.inode, size): node.content[size:block_end].rstrip(b"\0")}

    def unsettled(self, before: Collection[tuple[Entry, int]]) -> set[tuple[Entry, int]]:
        """Return the durable names that no barrier on their directories has covered by now."""
        inode = self.sync.inode
        if not inode:
            return set()
        kept = {(entry, file) for entry, file in before if entry[0] != inode}
        for index in self.covered:
            piece = self.pieces[index]
            if isinstance(piece, Name) and piece.gives is not None and piece.gives[0] != inode:
                kept.add((piece.gives, piece.inode))
        return kept
