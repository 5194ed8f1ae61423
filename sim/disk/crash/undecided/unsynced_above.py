"""The unsynced pieces of a lifetime that booted on an undecided disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from immutables import Map

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.lazy_inode import LazyInode
from sim.disk.cache.operation import DropPages, Operation
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.notes import Carried, Surplus
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided import content, names
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import everything
from sim.disk.crash.undecided.stack import Decision, Stack
from sim.disk.crash.unsynced import Unsynced
from sim.errors import NeedsWholeImage


class _MissingDecision(Exception):
    """The pieces depend on the platter, where a decision is missing."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision)
        self.decision = decision


class _Platter(InodeTable):
    """An undecided platter, with the pieces above it that this lifetime has made durable."""

    __slots__ = ("_durable", "_model", "_stack")

    def __init__(
        self, stack: Stack, durable: list[MicroOperation], model: PersistenceModel
    ) -> None:
        super().__init__(Map())
        self._stack = stack
        self._durable = durable
        self._model = model

    def _now(self) -> Stack:
        return self.below(Ordering(self._model))

    def below(self, unsynced: Ordering) -> Stack:
        """Return the platter with unsynced pieces of this lifetime, as if they had survived."""
        base, layers, progress = self._stack
        layer = Layer(self._durable, unsynced)
        return Stack(base, (*layers, layer), (*progress, everything(layer)))

    def get(self, number: int) -> Inode | None:
        stack = self._now()
        exists = _decided(names.exists_at(stack, stack.top, number))
        return self.inode(number) if exists else None

    # -- sim.disk.cache.lazy_inode.Asker -------------------------------------------------------

    def inode(self, number: int) -> LazyInode:
        found = _decided(content.attributes(self._now(), number))
        return LazyInode(self, number, found.mode, found.uid, found.gid, found.link_text)

    def size(self, number: int, cap: int) -> int:
        return _decided(content.size(self._now(), number, cap))

    def data(self, number: int, start: int, end: int) -> bytes:
        return _decided(content.data(self._now(), number, start, end))

    def has_block(self, number: int, index: int) -> bool:
        return _decided(content.has_block(self._now(), number, index))

    def entry(self, number: int, name: str) -> int:
        return _decided(names.entry(self._now(), (number, name)))

    def names(self, number: int) -> tuple[str, ...]:
        self.refuse(f"the names in directory {number}")

    def links(self, number: int) -> int:
        self.refuse(f"the link count of inode {number}")

    def parent(self, number: int) -> int:
        self.refuse(f"the parent of inode {number}")

    def times_ns(self, number: int) -> tuple[int, int, int]:
        self.refuse(f"the times of inode {number}")

    def st_ino(self, number: int) -> int:
        return number

    def refuse(self, wanted: str) -> NoReturn:
        raise NeedsWholeImage(f"{wanted} on the platter")


_T = TypeVar("_T")


def _decided(found: _T | Decision) -> _T:
    if isinstance(found, Decision):
        raise _MissingDecision(found)
    return found


class _UnsyncedAbove(Unsynced):
    """As ``Unsynced``, but pieces that become durable are kept, not applied to a platter."""

    def __init__(
        self,
        model: PersistenceModel,
        stack: Stack,
        durable: Iterable[MicroOperation],
        carried: Iterable[Carried],
    ) -> None:
        super().__init__(model, Map())
        self.durable = list(durable)
        self._platter = _Platter(stack, self.durable, model)
        self.table = self._earlier.table = self._platter
        # The layers know the bytes beyond the ends of files.
        self._read_carried(each for each in carried if not isinstance(each, Surplus))

    def _make_durable(self, micro: MicroOperation) -> None:
        self.durable.append(micro)

    def _written_back(self, number: int, blocks: Iterable[int]) -> Mapping[int, bytes]:
        stack = self._platter.below(self.ordering)
        return {
            block: _decided(
                content.data(stack, number, block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES)
            )
            for block in blocks
        }


class Lifetime(NamedTuple):
    """The pieces of one lifetime, in a part ``box`` of the disks that its boot may have found.

    ``durable`` are those that it has put on the platter. ``since`` is the index of the first
    unsynced piece of its last operation, 0 if any piece may make a new state. ``dropped`` has for
    each operation that drops pages the content of their blocks, by number.
    """

    box: Box
    durable: Sequence[MicroOperation]
    unsynced: Unsynced
    since: int
    dropped: Sequence[Mapping[int, bytes]]


def recoveries(
    box: Box, operations: Sequence[Operation], model: PersistenceModel
) -> Iterator[Lifetime]:
    """Yield the parts of a box in which these operations leave the same pieces.

    The operations name inodes by their real numbers.
    """
    waiting = [box]
    while waiting:
        part = waiting.pop()
        try:
            yield _lifetime(part, operations, model)
        except _MissingDecision as missing:
            waiting.extend(reversed(part.divided(missing.decision)))


def _lifetime(box: Box, operations: Sequence[Operation], model: PersistenceModel) -> Lifetime:
    unsynced = _UnsyncedAbove(model, box.platter, box.durable, box.carried)
    since, dropped = 0, []
    for number, operation in enumerate(operations, 1):
        if number == len(operations):
            since = len(unsynced.micros)
        unsynced.advance(operation, number)
        if isinstance(operation, DropPages):
            dropped.append(unsynced.dropped)
    if unsynced.allows_more:
        since = 0
    return Lifetime(box, unsynced.durable, unsynced, since, dropped)
