"""Boxes: the survivor sets of a chain of crashes that a boot cannot distinguish yet.

``split`` divides a box by the answers to a question. Boxes are disjoint and never empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, assert_never

from sim.disk.cache.inode import ROOT
from sim.disk.cache.inode_table import Inodes
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.notes import Carried
from sim.disk.crash.undecided.content import attributes, data, size
from sim.disk.crash.undecided.factor import Factor, factors_of, keeps_tears
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.names import (
    directory_links,
    entry,
    is_directory,
    links,
    names,
    parent,
)
from sim.disk.crash.undecided.progress import Progress, everything
from sim.disk.crash.undecided.question import Answer, NewInode, Property, Question
from sim.disk.crash.undecided.stack import Decision, Stack

Times: TypeAlias = tuple[int | None, int | None, int | None]
_UNSET: Final[Times] = (None, None, None)


@dataclass(frozen=True, slots=True)
class KilledCache:
    """The page cache that a kill leaves, as the next process reads it: ``layer`` above ``base``.

    Without ``base`` it lies above the platter. ``times_ns`` has for each inode the times of
    access, modification and change that the operations of ``layer`` set, in nanoseconds. ``lost``
    are the inodes of which failed barriers have lost data.
    """

    base: Inodes | None = None
    layer: Layer | None = None
    times_ns: Mapping[int, Times] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()


class Box(NamedTuple):
    """Some of the survivor sets of a chain of crashes, the first one at the bottom.

    ``layers`` have the pieces at each power cut, above the platter ``base``. After a kill
    ``cache`` is what a boot reads, and ``durable`` and ``carried`` are the pieces that this
    lifetime has made durable and left unsynced. ``numbers`` are the inodes that the boot has
    met, in that order; ``next_inode`` is the first number that is free. ``factors`` restrict
    pieces that are undecided in ``progress``.
    """

    base: Inodes
    layers: tuple[Layer, ...]
    progress: tuple[Progress, ...]
    next_inode: int
    numbers: tuple[int, ...] = (ROOT,)
    cache: KilledCache | None = None
    durable: tuple[MicroOperation, ...] = ()
    carried: tuple[Carried, ...] = ()
    factors: tuple[Factor, ...] = ()

    @classmethod
    def of_image(cls, image: Image) -> Box:
        """Return the box of a crash image, of which nothing is undecided; only a boot reads it."""
        cache = KilledCache(image.cached, lost=image.with_lost_data)
        carried = image.unsynced
        return cls(image.platter, (), (), image.next_inode, cache=cache, carried=carried)

    @property
    def platter(self) -> Stack:
        """The stack that a power cut leaves, before the crash of this lifetime."""
        return Stack(self.base, self.layers, self.progress)

    @property
    def view(self) -> Stack:
        """The stack that the boot reads."""
        if self.cache is None:
            return self.platter
        base, layer = self.cache.base, self.cache.layer
        stack = self.platter if base is None else Stack(base, (), ())
        if layer is None:
            return stack
        above = everything(layer)
        return Stack(stack.base, (*stack.layers, layer), (*stack.progress, above))

    def divided(self, decision: Decision) -> list[Box]:
        """Return the parts of this box after each outcome of a decision, the plainest first.

        If a factor has the piece, the parts are the ways of the factor, in which the piece may
        still be undecided.
        """
        for factor in self.factors:
            if factor.has(decision.level, decision.piece):
                return [self.in_way(factor, way) for way in range(len(factor.ways))]
        return [self._replace(progress=each) for each in self.platter.divided(decision)]

    def in_way(self, factor: Factor, way: int) -> Box:
        """Return the part of this box in one of the ways of a factor."""
        others = tuple(each for each in self.factors if each is not factor)
        return self._replace(progress=factor.applied(self.progress, way), factors=others)

    def in_plainest_way(self) -> Box:
        """Return the part of this box in which each factor has its first way."""
        found = self
        while found.factors:
            found = found.in_way(found.factors[0], 0)
        return found

    def together(self, parts: Sequence[Box]) -> list[Box]:
        """Join these parts of this box into as few boxes as factors can express.

        Nothing but the decided pieces may differ between the parts.
        """
        alike = [
            part
            for part in parts
            if part.factors == self.factors and keeps_tears(self.progress, part.progress)
        ]
        if len(alike) < 2:
            return [*parts]
        ways = [part.progress for part in alike]
        found = []
        for progress, factor in factors_of(self.layers, self.progress, ways):
            added = () if factor is None else (factor,)
            found.append(self._replace(progress=progress, factors=(*self.factors, *added)))
        return found + [part for part in parts if not any(part is each for each in alike)]


def split(box: Box, question: Question) -> Iterator[tuple[Answer, Box]]:
    """Yield the parts of a box, each with the answer that its survivor sets give."""
    waiting = [box]
    while waiting:
        part = waiting.pop()
        found = answer(part, question)
        if isinstance(found, Decision):
            waiting.extend(reversed(part.divided(found)))
        elif isinstance(found, _Met):
            yield found.inode, part._replace(numbers=(*part.numbers, found.number))
        else:
            yield found, part


class _Met:
    """An inode that is met now, with its number in this box."""

    __slots__ = ("inode", "number")

    def __init__(self, inode: NewInode, number: int) -> None:
        self.inode = inode
        self.number = number


def answer(box: Box, question: Question) -> Answer | _Met | Decision:
    """Return the answer of all survivor sets of a box, or the first decision that is missing."""
    wanted, inode, start, end, name = question
    if wanted is Property.NUMBER:
        return box.numbers[inode - 1] if inode > 0 else box.next_inode - inode
    stack, number = box.view, box.numbers[inode - 1]
    found: Answer | _Met | Decision
    match wanted:
        case Property.SIZE:
            found = size(stack, number, end)
        case Property.DATA:
            found = data(stack, number, start, end)
        case Property.ENTRY:
            found = _met(box, stack, entry(stack, (number, name)))
        case Property.NAMES:
            found = names(stack, number)
        case Property.LINKS:
            count = directory_links if is_directory(stack, number) else links
            found = count(stack, number)
        case Property.PARENT:
            found = _met(box, stack, parent(stack, number))
        case Property.TIMES:
            found = _times_ns(box, stack, number)
        case Property.LOST_DATA:
            found = int(box.cache is not None and number in box.cache.lost)
        case Property.ATTRIBUTES:
            met = _attributes(stack, number)
            found = met.inode if isinstance(met, _Met) else met
        case _:
            assert_never(wanted)
    return found


def _met(box: Box, stack: Stack, number: int | Decision) -> int | _Met | Decision:
    if isinstance(number, Decision) or not number:
        return number
    if number in box.numbers:
        return box.numbers.index(number) + 1
    return _attributes(stack, number)


def _attributes(stack: Stack, number: int) -> _Met | Decision:
    found = attributes(stack, number)
    if isinstance(found, Decision):
        return found
    return _Met(NewInode(found.mode, found.uid, found.gid, found.link_text), number)


def _times_ns(box: Box, stack: Stack, number: int) -> tuple[int, int, int] | Decision:
    found = attributes(stack, number)
    if isinstance(found, Decision):
        return found
    set_ns = box.cache.times_ns.get(number, _UNSET) if box.cache else _UNSET
    atime, mtime, ctime = (
        old if new is None else new for old, new in zip(found.times_ns, set_ns, strict=True)
    )
    return atime, mtime, ctime
