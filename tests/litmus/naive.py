"""A power cut, enumerated naively: every subset of the pieces, kept if the table allows it.

This oracle is written from the table of persistence models. It shares nothing with
``sim/disk`` but the journal and the models as data. It is slow, and short enough to be
checked by reading. ``StateSpace`` must yield the same states, no more and no fewer.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from sim.disk.cache.operation import (
    Create,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    Unlink,
    Write,
)
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import (
    DataBeforeSize,
    DirectoryOrder,
    PersistenceModel,
    StaleBytes,
    TruncateOrder,
)
from tests.litmus.naive_piece import Piece

BLOCK, SECTOR = 4096, 512

Tree = frozenset[tuple[str, int, int, bytes]]
"""A visible disk: path, inode number, mode, content (empty for a directory)."""


@dataclass
class Node:
    """One inode on the platter; ``content`` beyond ``size`` is not visible."""

    mode: int
    size: int = 0
    content: bytes = b""
    entries: dict[str, int] = field(default_factory=dict)

    def put(self, offset: int, data: bytes) -> None:
        content = self.content.ljust(offset, b"\0")
        self.content = content[:offset] + data + content[offset + len(data) :]


Nodes = dict[int, Node]


class NaiveDisk:
    """A platter and the unsynced pieces above it, under ``model``."""

    def __init__(self, model: PersistenceModel, image: Image) -> None:
        self.model = model
        self.nodes: Nodes = {}
        for number, inode in image.platter.items():
            content = inode.read(0, inode.size)
            self.nodes[number] = Node(inode.mode, inode.size, content, dict(inode.entries))
        self.unsynced: list[Piece] = []

    # -- the journal ---------------------------------------------------------------------

    def advance(self, operation: Operation, call: int) -> None:
        """Read one operation."""
        match operation:
            case Write():
                self._write(operation, call)
            case Sync():
                self._sync(operation)
            case Resize(inode=inode, size=size):
                self.unsynced.append(Piece(call, "size", inode, size=size))
            case SetAttributes(inode=inode, mode=mode):
                self.unsynced.append(Piece(call, "mode", inode, mode=mode))
            case Create(inode=inode, mode=mode, directory=directory, name=name):
                is_directory = stat.S_ISDIR(mode)
                self.unsynced.append(
                    Piece(call, "create", inode, mode=mode, is_directory=is_directory)
                )
                if name:
                    self._name("link", call, inode, ((directory, name),))
            case Link(_, inode, directory, name, _):
                self._name("link", call, inode, ((directory, name),))
            case Unlink(_, inode, directory, name, _):
                self._name("unlink", call, inode, ((directory, name),))
            case Rename(_, inode, directory, name, _, to_directory, to_name, replaced, _):
                names = ((directory, name), (to_directory, to_name))
                self._name("move", call, inode, names, over=bool(replaced))
            case FailedSync():
                raise NotImplementedError(operation)

    def _name(
        self, kind: str, call: int, inode: int, names: tuple[tuple[int, str], ...], *,
        over: bool = False,
    ) -> None:  # fmt: skip
        created = [piece.is_directory for piece in self.unsynced if piece.kind == "create"
                and piece.inode == inode]  # fmt: skip
        is_directory = created[0] if created else stat.S_ISDIR(self.nodes[inode].mode)
        directories = tuple(directory for directory, _ in names)
        self.unsynced.append(
            Piece(call, kind, inode, directories, names, is_directory=is_directory, over=over)
        )

    def _write(self, write: Write, call: int) -> None:
        """Cut a call at blocks, and blocks at the unit; a block that grows the file has a size."""
        sequential, unit = self.model.sequential, self.model.unit_bytes
        start, end = write.offset, write.offset + len(write.data)
        while start < end:
            block_end = end if not unit else min(end, (start // BLOCK + 1) * BLOCK)
            allocated_now = any(
                piece.kind == "data" and piece.inode == write.inode and piece.fresh
                and piece.offset // BLOCK == start // BLOCK
                for piece in self.unsynced
            )  # fmt: skip
            fresh = start // BLOCK * BLOCK >= write.size_before or allocated_now
            while start < block_end:
                stop = block_end
                if not sequential:
                    stop = min(block_end, (start // unit + 1) * unit)
                data = write.data[start - write.offset : stop - write.offset]
                self.unsynced.append(
                    Piece(
                        call, "data", write.inode, offset=start, data=data, fresh=fresh,
                        appended=start >= write.size_before, size=stop if sequential else 0,
                    )
                )  # fmt: skip
                start = stop
            if not sequential and block_end > write.size_before:
                self.unsynced.append(Piece(call, "size", write.inode, size=block_end, append=True))

    # -- must precede --------------------------------------------------------------------

    def meaning(self, first: int, then: int) -> bool:
        """Return whether ``then`` is meaningless without ``first``, under any model."""
        a, b = self.unsynced[first], self.unsynced[then]
        if a.kind == "create":
            return a.inode == b.inode or a.inode in b.directories
        if a.inode == b.inode and a.kind == b.kind in ("size", "mode"):
            return True
        if b.kind == "data" and a.inode == b.inode:
            if a.kind == "data":
                return self._unit(a) == self._unit(b)
            cuts = a.kind == "size" and not a.append
            return cuts and self.model.truncate_order is not TruncateOrder.NONE
        if b.kind == "size" and b.append and a.kind == "data":
            return self._exposed(a, b)
        if b.kind == "move":
            return self._before_move(first, a, then, b)
        return False

    def _exposed(self, data: Piece, size: Piece) -> bool:
        """Return whether a size must wait for this data, which it would expose."""
        if (data.call, data.inode) != (size.call, size.inode):
            return False
        same_block = data.offset // BLOCK == (size.size - 1) // BLOCK
        waits = self.model.data_before_size
        fresh = waits is DataBeforeSize.NEW_BLOCKS and data.fresh
        return same_block and (waits is DataBeforeSize.ALWAYS or fresh)

    def _before_move(self, first: int, a: Piece, then: int, b: Piece) -> bool:
        """Return whether a rename waits for ``a``: data, a directory, or the move of one."""
        waits = self.model.rename_over_waits if b.over else self.model.rename_new_waits
        if waits and a.inode == b.inode and a.kind in ("data", "size"):
            return True
        if a.kind == "move" and a.is_directory and b.is_directory:
            return True
        old, new = b.directories
        return old != new and first in self._names_of_new(new, then)

    def _names_of_new(self, directory: int, before: int) -> list[int]:
        """Return the names of a directory and of those above it, up to one that has a name."""
        way: list[int] = []
        for index in self._way_to(directory, before):
            moved = self.unsynced[index].inode
            if not any(
                piece.kind == "link" and piece.inode == moved for piece in self.unsynced[:before]
            ):
                break
            way.append(index)
        return way

    def _way_to(self, directory: int, before: int) -> list[int]:
        """Return the pieces that put a directory, and those above it, in their places."""
        way: list[int] = []
        while True:
            put = [
                index for index, piece in enumerate(self.unsynced[:before])
                if piece.kind in ("link", "move") and piece.inode == directory
            ]  # fmt: skip
            if not put:
                return way
            way.append(put[-1])
            directory = self.unsynced[put[-1]].directories[-1]

    def ordered(self, first: int, then: int) -> bool:
        """Return whether the model keeps in order two pieces that have a meaning alone."""
        if self.model.sequential:
            return True
        a, b = self.unsynced[first], self.unsynced[then]
        if self.model.directory_order is DirectoryOrder.SAME:
            return bool(set(a.directories) & set(b.directories))
        if self.model.directory_order is DirectoryOrder.ALL:
            return self._is_metadata(a) and (b.kind == "size" or self._is_metadata(b))
        return False

    def _is_metadata(self, piece: Piece) -> bool:
        return piece.kind in ("link", "unlink", "move", "mode") or (
            piece.kind == "size" and not piece.append
        )

    def _unit(self, piece: Piece) -> int:
        return piece.offset // self.model.unit_bytes if self.model.unit_bytes else 0

    # -- barriers ------------------------------------------------------------------------

    def _sync(self, sync: Sync) -> None:
        count = len(self.unsynced)
        covered = {index for index in range(count) if not sync.inode or self._covers(sync, index)}
        if self.model.sync_names and sync.inode:
            for index in sorted(covered):
                piece = self.unsynced[index]
                if piece.kind in ("link", "move") and piece.inode == sync.inode:
                    covered |= set(self._way_to(piece.directories[-1], count))
        for then in range(count - 1, -1, -1):
            if then in covered:
                covered |= {
                    first for first in range(then)
                    if self.meaning(first, then)
                    or (self.model.sync_metadata and self.ordered(first, then))
                    or self._same_name(first, then)
                }  # fmt: skip
        for index in sorted(covered):
            _apply(self.unsynced[index], self.nodes)
        left = [self._less_cut(index, covered) for index in range(count) if index not in covered]
        self.unsynced = [piece for piece in left if piece.data or piece.kind != "data"]

    def _less_cut(self, index: int, covered: set[int]) -> Piece:
        """Return a piece without the data that a later, now durable truncation cut off."""
        piece = self.unsynced[index]
        if piece.kind != "data":
            return piece
        sizes = [
            self.unsynced[later].size
            for later in covered
            if later > index and self._is_cut(later) and self.unsynced[later].inode == piece.inode
        ]
        kept = max(0, min(sizes, default=piece.offset + len(piece.data)) - piece.offset)
        return replace(piece, data=piece.data[:kept])

    def _is_cut(self, index: int) -> bool:
        return self.unsynced[index].kind == "size" and not self.unsynced[index].append

    def _covers(self, sync: Sync, index: int) -> bool:
        piece = self.unsynced[index]
        own = piece.inode == sync.inode
        all_metadata = self.model.sync_metadata and not sync.data_only
        if all_metadata and self._is_metadata(piece):
            return True
        if piece.kind in ("create", "data", "size"):
            return own
        if piece.kind == "mode":
            return own and not sync.data_only
        into = piece.directories[-1] == sync.inode
        return into or (own and self.model.sync_names and piece.kind != "unlink")

    def _same_name(self, first: int, then: int) -> bool:
        """Return whether both change one name: an earlier change does not undo a durable one."""
        return not set(self.unsynced[first].names).isdisjoint(self.unsynced[then].names)

    # -- crashes -------------------------------------------------------------------------

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
        before = [
            {a for a in range(b) if self.meaning(a, b) or self.ordered(a, b)} for b in range(count)
        ]
        for bits in product((True, False), repeat=count):
            survived = frozenset(index for index in range(count) if bits[index])
            if all(before[index] <= survived for index in survived):
                yield survived

    def _damaged(self, survived: frozenset[int]) -> Iterator[list[Piece]]:
        """Yield the survivors with every write torn at every byte, and every stale slice."""
        ways: list[list[Piece | None]] = []
        for index, piece in enumerate(self.unsynced):
            if index in survived:
                ways.append([piece, *self._torn(index, survived)])
            elif self._shows_stale(index, survived):
                ways.append([None, replace(piece, data=_stale(piece))])
        for way in product(*ways):
            yield [piece for piece in way if piece is not None]

    def _torn(self, index: int, survived: frozenset[int]) -> list[Piece]:
        piece = self.unsynced[index]
        last = not any(later > index and self.meaning(index, later) for later in survived)
        if not (self.model.torn_units and piece.kind == "data" and last):
            return []
        return [replace(piece, data=piece.data[:kept]) for kept in range(1, len(piece.data))]

    def _shows_stale(self, index: int, survived: frozenset[int]) -> bool:
        piece, where = self.unsynced[index], self.model.stale_bytes
        if piece.kind != "data" or not piece.appended or where is StaleBytes.NOWHERE:
            return False
        earlier = [other for other in range(index) if self.unsynced[other].inode == piece.inode]
        pieces = self.unsynced
        cuts = [
            other for other in earlier if pieces[other].kind == "size" and not pieces[other].append
        ]
        created = [other for other in earlier if pieces[other].kind == "create"]
        needed = {*created, *cuts[-1:]}
        return needed <= survived and (where is StaleBytes.ANYWHERE or piece.fresh)

    def tree(self, pieces: list[Piece]) -> Tree:
        """Return the visible disk after these pieces reached the platter, in order."""
        nodes = {
            number: replace(node, entries=dict(node.entries)) for number, node in self.nodes.items()
        }
        for piece in pieces:
            _apply(piece, nodes)
        return frozenset(_walk("/", 1, nodes))


def _apply(piece: Piece, nodes: Nodes) -> None:
    if piece.kind == "create":
        nodes[piece.inode] = Node(piece.mode)
        return
    node = nodes[piece.inode]
    match piece.kind:
        case "data":
            node.put(piece.offset, piece.data)
            node.size = max(node.size, piece.size)
        case "size" if piece.append:
            node.size = max(node.size, piece.size)
        case "size":
            node.size = piece.size
            node.content = node.content[: piece.size]
        case "mode":
            node.mode = piece.mode
        case _:
            for directory, name in piece.names if piece.kind != "link" else ():
                if nodes[directory].entries.get(name) == piece.inode:
                    del nodes[directory].entries[name]
            if piece.kind != "unlink":
                directory, name = piece.names[-1]
                nodes[directory].entries[name] = piece.inode


def _stale(piece: Piece) -> bytes:
    pattern = f"stale {piece.inode}.{piece.offset // SECTOR}\n".encode()
    return (pattern * len(piece.data))[: len(piece.data)]


def _walk(path: str, number: int, nodes: Nodes) -> Iterator[tuple[str, int, int, bytes]]:
    node = nodes[number]
    is_directory = stat.S_ISDIR(node.mode)
    content = b"" if is_directory else node.content[: node.size].ljust(node.size, b"\0")
    yield path, number, node.mode, content
    for name, child in node.entries.items():
        yield from _walk(f"{path.rstrip('/')}/{name}", child, nodes)


def tree_of(image: Image) -> Tree:
    """Return the visible disk of an image."""
    return frozenset(
        (path, inode.number, inode.mode, b"" if inode.is_directory else inode.read(0, inode.size))
        for path, inode in image.tree()
    )
