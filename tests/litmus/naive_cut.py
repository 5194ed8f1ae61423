"""The pieces of an operation under a model: the tables of ``docs/disk.md``, "Pieces"."""

from __future__ import annotations

import stat
from collections.abc import Collection, Sequence
from dataclasses import replace

from sim.disk.cache.operation import (
    Allocate,
    Create,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    Unlink,
    Write,
)
from sim.disk.crash.persistence import PersistenceModel, RenameParts, Truncation
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
    has_name,
    parts,
)

Unsettled = Collection[tuple[Entry, int]]
"""Durable names that no barrier on their directories has covered, with their files."""


def pieces_of(
    operation: Operation,
    call: int,
    model: PersistenceModel,
    platter: Platter,
    unsynced: list[Piece],
    unsettled: Unsettled,
    old_tails: OldTails,
    calls: Sequence[Operation],
) -> list[Piece]:
    """Cut an operation that changes something.

    ``unsynced`` are the pieces, and ``calls`` all operations, before it.
    """
    match operation:
        case Create():
            return _create(operation, call)
        case Link(inode=inode, directory=directory, name=name):
            return [Name(call, inode, Change.LINK, gives=(directory, name))]
        case Unlink():
            return _unlink(operation, call, model, platter, unsynced, unsettled)
        case Rename():
            return _rename(operation, call, model, platter, unsynced, unsettled, calls)
        case SetAttributes(inode=inode, mode=mode):
            return [Attributes(call, inode, mode)]
        case Write():
            return _write(operation, call, model, platter, unsynced)
        case Allocate():
            return _allocate(operation, call, model, old_tails)
        case Resize():
            return _resize(operation, call, model, unsynced, old_tails)
    raise NotImplementedError(operation)


def _create(create: Create, call: int) -> list[Piece]:
    inode, name = create.inode, (create.directory, create.name)
    pieces: list[Piece] = [Creation(call, inode, create.mode)]
    if create.name:
        is_directory = stat.S_ISDIR(create.mode)
        pieces.append(Name(call, inode, Change.CREATE, gives=name, is_directory=is_directory))
    return pieces


# -- content -------------------------------------------------------------------------------


def _write(
    write: Write, call: int, model: PersistenceModel, platter: Platter, unsynced: list[Piece]
) -> list[Piece]:
    inode, end = write.inode, write.offset + len(write.data)
    if model.unit_bytes == 0:
        return [Data(call, inode, write.offset, write.data, True, True, end)]
    before = write.size_before
    pieces: list[Piece] = []
    if _up(before) <= write.offset and not model.sequential:
        pieces += _end_of_block(write, call, _up(before), platter, unsynced)
    for block_start, block_end in parts(write.offset, end, BLOCK):
        block = block_start // BLOCK
        new = block * BLOCK >= write.size_before or _allocated(inode, block, unsynced)
        for start, stop in parts(block_start, block_end, model.unit_bytes):
            data = write.data[start - write.offset : stop - write.offset]
            appended = start >= write.size_before
            grows_to = stop if model.sequential else 0
            pieces.append(Data(call, inode, start, data, new, appended, grows_to))
        if model.sequential:
            continue
        known, sizes = _sizes_of(inode, platter, [*unsynced, *pieces])
        if block_end > before or block_end > max({known, *sizes}):
            pieces.append(Size(call, inode, block_end, Sized.WRITE))
        if _up(block_end) <= before:
            pieces += _end_of_block(write, call, _up(block_end), platter, [*unsynced, *pieces])
    return pieces


def _up(offset: int) -> int:
    """Return the end of the block that an offset is in, or is the end of."""
    return (offset + BLOCK - 1) // BLOCK * BLOCK


def _end_of_block(
    write: Write, call: int, size: int, platter: Platter, unsynced: list[Piece]
) -> list[Piece]:
    """Return a size that no call gave the file; none if the file gets this size anyway."""
    known, others = _sizes_of(write.inode, platter, unsynced)
    return [] if size <= known or size in others else [Size(call, write.inode, size, Sized.BLOCK)]


def _sizes_of(inode: int, platter: Platter, unsynced: list[Piece]) -> tuple[int, set[int]]:
    """Return the size that the last truncation set, else that on the platter; and later sizes."""
    known, others = platter[inode].size if inode in platter else 0, set[int]()
    for piece in unsynced:
        if isinstance(piece, Size) and piece.inode == inode:
            known, others = (piece.size, set()) if piece.is_set else (known, others | {piece.size})
    return known, others


def _allocated(inode: int, block: int, unsynced: list[Piece]) -> bool:
    """Return whether an unsynced write allocated a block, and no truncation freed it since."""
    allocated = False
    for piece in unsynced:
        if piece.inode != inode:
            continue
        if isinstance(piece, Data) and piece.offset // BLOCK == block and piece.new_block:
            allocated = True
        if isinstance(piece, Size) and 0 <= piece.freed_from <= block * BLOCK:
            allocated = False
    return allocated


def _resize(
    resize: Resize,
    call: int,
    model: PersistenceModel,
    unsynced: list[Piece],
    old_tails: OldTails,
) -> list[Piece]:
    inode, size, before = resize.inode, resize.size, resize.size_before
    if size == before:
        return [Size(call, inode, size, Sized.SAME)]
    if size > before:
        return _growth(inode, size, before, call, model, old_tails)
    freed = (size + BLOCK - 1) // BLOCK * BLOCK
    zeros: list[Piece] = [
        Zeros(call, inode, start, stop - start)
        for start, stop in parts(size, min(freed, before), model.unit_bytes or BLOCK)
    ]

    def sized(drops_from: int, *, needs_zeros: bool = False) -> Size:
        return Size(call, inode, size, Sized.TRUNCATE, freed, drops_from, needs_zeros)

    match model.truncation:
        case Truncation.WHOLE:
            return [sized(size)]
        case Truncation.ZEROS_FIRST if _allocated(inode, size // BLOCK, unsynced):
            return [*zeros, sized(size)]
        case Truncation.ZEROS_FIRST:
            return [*zeros, sized(freed, needs_zeros=True)]
        case Truncation.ZEROS_APART:
            return [*zeros, sized(freed)]
        case Truncation.FREED_LATER:
            return [sized(-1), Freeing(call, inode, freed), *zeros]
        case Truncation.APART:
            return [*zeros, sized(-1), Freeing(call, inode, freed)]


def _allocate(
    allocate: Allocate, call: int, model: PersistenceModel, old_tails: OldTails
) -> list[Piece]:
    inode, end, before = allocate.inode, allocate.end, allocate.size_before
    if end > before and (inode, before) in old_tails:
        return _growth(inode, end, before, call, model, old_tails)
    return [Size(call, inode, end, Sized.ALLOCATE if end > before else Sized.WITHIN)]


def _growth(
    inode: int, size: int, before: int, call: int, model: PersistenceModel, old_tails: OldTails
) -> list[Piece]:
    tail = old_tails.get((inode, before), b"")[: size - before]
    over = parts(before, before + len(tail), model.unit_bytes or BLOCK)
    return [
        Size(call, inode, size, Sized.TRUNCATE, tail_at=before, old_tail=tail),
        *(Zeros(call, inode, start, stop - start) for start, stop in over),
    ]


# -- names ---------------------------------------------------------------------------------


def _unlink(
    unlink: Unlink,
    call: int,
    model: PersistenceModel,
    platter: Platter,
    unsynced: list[Piece],
    unsettled: Unsettled,
) -> list[Piece]:
    inode, entry = unlink.inode, (unlink.directory, unlink.name)
    loser = loser_of(entry, inode, platter, unsynced, unsettled)
    pieces: list[Piece] = [
        Name(call, inode, Change.UNLINK, takes=entry, returns_to=loser),
        *losses(call, loser, entry),
    ]
    durable = _durable_name(inode, entry, platter, unsynced)
    if model.rename_parts is RenameParts.SOME and durable not in (None, entry):
        pieces.append(Name(call, inode, Change.DURABLE_NAME, takes=durable))
    return pieces


def _rename(
    rename: Rename,
    call: int,
    model: PersistenceModel,
    platter: Platter,
    unsynced: list[Piece],
    unsettled: Unsettled,
    calls: Sequence[Operation],
) -> list[Piece]:
    inode, replaced = rename.inode, rename.replaced
    old, new = (rename.directory, rename.name), (rename.to_directory, rename.to_name)
    is_directory = is_directory_now(inode, platter, unsynced)
    loser = loser_of(old, inode, platter, unsynced, unsettled)
    whole = Name(
        call, inode, Change.RENAME, gives=new, takes=old, replaced=replaced,
        into=new[0] if new[0] != old[0] else 0, moved_from=old, returns_to=loser,
        is_directory=is_directory,
    )  # fmt: skip
    parts = [
        Name(
            call, inode, Change.NEW_NAME, gives=new, replaced=replaced, moved_from=old,
            is_directory=is_directory,
        ),
        Name(
            call, inode, Change.OLD_NAME, takes=old, into=new[0], returns_to=loser,
            is_directory=is_directory,
        ),
    ]  # fmt: skip
    if model.rename_parts is RenameParts.NONE:
        return [whole]
    if model.rename_parts is RenameParts.ALL and not is_directory:
        without_order = [replace(part, into=0, returns_to=0) for part in parts]
        return [*losses(call, replaced, new), *without_order]
    pieces: list[Piece] = []
    in_parts = (
        rename.links_left
        or (new, replaced) in unsettled
        or _has_unsynced_name(replaced, new, unsynced)
    )
    if not is_directory and in_parts and not _is_logged_since(inode, replaced, calls):
        beneath = loser_of(new, replaced, platter, unsynced, unsettled)
        first = beneath or _replaced_before(new, replaced, platter, unsynced, unsettled)
        pieces += losses(call, replaced, new, first)
    pieces += [whole] if is_directory or new[0] == old[0] else parts
    pieces += losses(call, loser, old)
    durable = _durable_name(inode, old, platter, unsynced)
    if not is_directory and durable is not None and durable not in (old, new):
        pieces.append(Name(call, inode, Change.DURABLE_NAME, takes=durable, into=new[0]))
    return pieces


def _is_logged_since(inode: int, other: int, calls: Sequence[Operation]) -> bool:
    """Return whether a file was changed, and then synced, after the last barrier on another."""
    is_changed = is_logged = False
    for call in calls:
        if isinstance(call, Sync):
            if call.inode == other:
                is_changed = is_logged = False
            elif call.inode == inode:
                is_logged |= is_changed
        elif isinstance(call, Create | Write | Resize | Allocate) and call.inode == inode:
            is_changed = True
    return is_logged


def losses(call: int, inode: int, entry: Entry, returns_to: int = 0) -> list[Piece]:
    """Return the loss of a name by an inode; none for inode 0."""
    loss = Name(call, inode, Change.LOSS, takes=entry, returns_to=returns_to)
    return [loss] if inode else []


def _holders(entry: Entry, platter: Platter) -> set[int]:
    """Return the inode that has a name on the platter, if there is one."""
    directory, name = entry
    if directory not in platter or name not in platter[directory].entries:
        return set()
    return {platter[directory].entries[name]}


def loser_of(
    entry: Entry, winner: int, platter: Platter, unsynced: list[Piece], unsettled: Unsettled
) -> int:
    """Return the first file whose loss of a name is unsynced; 0 without one.

    ``winner`` must have the name durably, or the file that has it durably was synced alone.
    """
    durable = {file for name, file in unsettled if name == entry} & _holders(entry, platter)
    if not (durable or winner in _holders(entry, platter)):
        return 0
    given = set(durable)
    for piece in unsynced:
        if not isinstance(piece, Name):
            continue
        if piece.gives == entry:
            given.add(piece.inode)
        lost = piece.change in (Change.UNLINK, Change.OLD_NAME, Change.LOSS)
        if lost and piece.takes == entry and piece.inode not in {winner, *given}:
            return piece.inode
    return 0


def _replaced_before(
    entry: Entry,
    winner: int,
    platter: Platter,
    unsynced: list[Piece],
    unsettled: Unsettled,
) -> int:
    """Return the file that has a name on the platter, which ``winner`` has unsynced; or 0.

    If no barrier on the directory has covered the name of that file, it is the first file whose
    loss of the name is unsynced. A file that moved away does not count.
    """
    first = next(iter(_holders(entry, platter)), 0)
    if first in (0, winner) or is_directory_now(first, platter, unsynced):
        return 0
    if (entry, first) in unsettled:
        return loser_of(entry, winner, platter, unsynced, unsettled)
    for piece in unsynced:
        if isinstance(piece, Name) and piece.inode == first and piece.moved_from == entry:
            return 0
    return first


def is_directory_now(inode: int, platter: Platter, unsynced: list[Piece]) -> bool:
    for piece in unsynced:
        if isinstance(piece, Creation) and piece.inode == inode:
            return stat.S_ISDIR(piece.mode)
    return stat.S_ISDIR(platter[inode].mode)


def _has_unsynced_name(inode: int, entry: Entry, unsynced: list[Piece]) -> bool:
    """Return whether a file has an unsynced name, but not the first name of a new file."""
    given = [
        piece.change
        for piece in unsynced
        if isinstance(piece, Name) and piece.inode == inode and piece.gives == entry
    ]
    is_new = any(isinstance(piece, Creation) and piece.inode == inode for piece in unsynced)
    return bool(given) and not (is_new and given[-1] is Change.CREATE)


def _durable_name(
    inode: int, entry: Entry, platter: Platter, unsynced: list[Piece]
) -> Entry | None:
    """Return the durable name from which unsynced renames led to ``entry``.

    None without one, or if the inode has got it again.
    """
    for piece in reversed(unsynced):
        if isinstance(piece, Name) and piece.inode == inode and piece.gives == entry:
            if piece.moved_from is None:
                return None
            entry = piece.moved_from
    own = (piece for piece in unsynced if isinstance(piece, Name) and piece.inode == inode)
    gives = [piece.gives == entry for piece in own if entry in (piece.gives, piece.takes)]
    is_given_back = gives and gives[-1]
    return entry if has_name(platter, entry, inode) and not is_given_back else None
