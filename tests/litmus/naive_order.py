"""The pieces that must survive before a piece: ``docs/disk.md``, "Order"."""

from __future__ import annotations

from sim.disk.crash.persistence import (
    DataBeforeSize,
    MetadataInOrder,
    PersistenceModel,
    RenameParts,
    RenameWaits,
    Truncation,
)
from tests.litmus.naive_piece import (
    BLOCK,
    Attributes,
    Change,
    Creation,
    Data,
    Freeing,
    Name,
    Piece,
    Size,
    Sized,
    Zeros,
)


def needs(model: PersistenceModel, pieces: list[Piece], first: int, then: int) -> bool:
    """Return whether the piece at ``then`` is meaningless without the one at ``first``."""
    a, b = pieces[first], pieces[then]
    if isinstance(a, Creation):
        return a.inode == b.inode or (isinstance(b, Name) and a.inode in b.directories)
    if isinstance(a, Name):
        return isinstance(b, Name) and _name_needs(pieces, first, a, then, b)
    return a.inode == b.inode and _same_file_needs(model, a, b)


def _same_file_needs(model: PersistenceModel, a: Piece, b: Piece) -> bool:
    match a, b:
        case Data() | Zeros(), Data() | Zeros():
            return _in_unit_order(model, a, b)
        case Size(is_set=True), Zeros() if model.truncation is Truncation.FREED_LATER:
            return True
        case Size(), Data() | Zeros():
            return _in_freed_block(model, a, b)
        case Zeros(), Size():
            return b.needs_zeros and a.call == b.call
        case Size(), Size() | Freeing():
            return a.is_set
        case Attributes(), Attributes():
            return True
    return False


def _in_unit_order(model: PersistenceModel, a: Data | Zeros, b: Data | Zeros) -> bool:
    if model.truncation is Truncation.APART and not (isinstance(a, Data) and isinstance(b, Data)):
        return False
    return unit_of(model, a) == unit_of(model, b)


def unit_of(model: PersistenceModel, piece: Data | Zeros) -> int:
    """Return the number of the unit that a piece is in."""
    return piece.offset // model.unit_bytes if model.unit_bytes else 0


def _in_freed_block(model: PersistenceModel, size: Size, data: Data | Zeros) -> bool:
    waits = model.truncation in (Truncation.ZEROS_FIRST, Truncation.ZEROS_APART)
    return waits and 0 <= size.freed_from <= data.offset


def _name_needs(pieces: list[Piece], first: int, a: Name, then: int, b: Name) -> bool:
    if b.change in (Change.OLD_NAME, Change.DURABLE_NAME) and b.into and a.call == b.call:
        return a.gives is not None
    both_move = a.change is Change.RENAME and b.change is Change.RENAME
    if both_move and a.is_directory and b.is_directory and _directory_rename_needs(a, b):
        return True
    return b.into != 0 and first in names_of_new(pieces, b.into, then)


def _directory_rename_needs(a: Name, b: Name) -> bool:
    if a.inode == b.inode or a.takes == b.gives:
        return True
    assert a.takes is not None, a
    return _changes_parent(a) and (_changes_parent(b) or a.takes[0] == b.replaced)


def _changes_parent(rename: Name) -> bool:
    assert rename.gives is not None, rename
    assert rename.takes is not None, rename
    return rename.gives[0] != rename.takes[0]


def names_of_new(pieces: list[Piece], directory: int, before: int) -> list[int]:
    """Return the names of a directory and of those above it, up to one that is not new."""
    new: list[int] = []
    for index in names_above(pieces, directory, before):
        inode = pieces[index].inode
        if not any(
            isinstance(piece, Name) and piece.change is Change.CREATE and piece.inode == inode
            for piece in pieces[:before]
        ):
            break
        new.append(index)
    return new


def names_above(pieces: list[Piece], directory: int, before: int) -> list[int]:
    """Return the last name of a directory, then that of the directory above it, and so on."""
    above: list[int] = []
    while True:
        given = [
            (index, piece.gives)
            for index, piece in enumerate(pieces[:before])
            if isinstance(piece, Name) and piece.inode == directory and piece.gives is not None
        ]
        if not given:
            return above
        index, (directory, _) = given[-1]
        above.append(index)


def ordered(
    model: PersistenceModel, pieces: list[Piece], first: int, then: int, *, log_tree: bool
) -> bool:
    """Return whether the model keeps in order two pieces that have a meaning alone."""
    a, b = pieces[first], pieces[then]
    if model.sequential:
        return True
    if isinstance(b, Size) and not b.is_set and _data_before_size(model, a, b):
        return True
    in_order = model.metadata_in_order is MetadataInOrder.ALWAYS or (
        model.metadata_in_order is MetadataInOrder.UNTIL_FSYNC and not log_tree
    )
    if in_order and is_metadata(a):
        return is_metadata(b) or (
            isinstance(b, Size) and b.sized not in (Sized.ALLOCATE, Sized.WITHIN, Sized.SAME)
        )
    parts_have_order = model.rename_parts is not RenameParts.ALL
    if parts_have_order and isinstance(a, Name) and isinstance(b, Name) and a.call == b.call:
        return a.change is Change.LOSS
    if isinstance(b, Name) and b.change is Change.RENAME and b.replaced and a.inode == b.inode:
        if model.rename_waits is RenameWaits.DATA:
            return isinstance(a, Size | Data)
        if model.rename_waits is RenameWaits.SIZE and isinstance(a, Size):
            return _is_written_by_rename(a, pieces[:then])
    return False


def _is_written_by_rename(size: Size, before: list[Piece]) -> bool:
    """Return whether a rename over a name writes this size of the file that moves.

    It does nothing for a file whose blocks ``posix_fallocate`` has allocated.
    """
    if size.sized not in (Sized.WRITE, Sized.BLOCK):
        return True
    allocated = 0
    for piece in before:
        if isinstance(piece, Size) and piece.inode == size.inode:
            if piece.sized in (Sized.ALLOCATE, Sized.WITHIN):
                allocated = max(allocated, piece.size)
            elif piece.is_set:
                allocated = min(allocated, piece.size)
    return allocated == 0 or (size.size - 1) // BLOCK > (allocated - 1) // BLOCK


def _data_before_size(model: PersistenceModel, a: Piece, size: Size) -> bool:
    if not isinstance(a, Data | Zeros) or a.inode != size.inode:
        return False
    if a.offset // BLOCK != (size.size - 1) // BLOCK:
        return False
    match model.data_before_size:
        case DataBeforeSize.ALWAYS:
            return True
        case DataBeforeSize.NEW_BLOCKS:
            return isinstance(a, Data) and a.call == size.call and a.new_block
        case DataBeforeSize.NEVER:
            return False


def is_metadata(piece: Piece) -> bool:
    """Return whether a piece is among those that ``metadata_in_order`` is about."""
    return isinstance(piece, Name | Attributes) or (isinstance(piece, Size) and piece.is_set)
