"""Survivor sets: the unsynced pieces that reached the platter before a power cut.

A survivor set is stored as its losses, so that the simplest one, without a loss, is empty.
Numbers are indexes in the list of unsynced pieces at the power cut, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeGuard

from sim.disk.crash.micro_operation import MicroOperation, WriteBlock, stale_form
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import PersistenceModel, ReducedModel, StaleBytes
from sim.errors import HarnessError

_SPARSE: Final = 8
"""The number of pieces for each lost one above which the losses are found one by one.

Otherwise it is faster to read all bits as a text.
"""


class SurvivorSet(NamedTuple):
    """The pieces that were ``lost`` or ``torn``, and the lost ones that show ``stale`` bytes.

    ``torn``: pairs of a write and the number of its bytes that survived. ``stale``: those
    lost writes in whose place the bytes from before the allocation are visible.
    """

    lost: tuple[int, ...] = ()
    torn: tuple[tuple[int, int], ...] = ()
    stale: tuple[int, ...] = ()

    def applied(self, micros: Sequence[MicroOperation], begin: int = 0) -> Iterator[MicroOperation]:
        """Yield the pieces as they reached the platter, in order, from index ``begin`` on."""
        if not (self.lost or self.torn):
            yield from micros[begin:]
            return
        lost, torn = frozenset(self.lost), dict(self.torn)
        for index, micro in enumerate(micros[begin:], begin):
            if index in lost:
                if index in self.stale and isinstance(micro, WriteBlock):
                    yield stale_form(micro)
            elif index in torn and isinstance(micro, WriteBlock):
                yield micro._replace(data=micro.data[: torn[index]])
            else:
                yield micro

    @property
    def first_loss(self) -> int:
        """The index of the first piece that is lost or torn; 0 if there is none."""
        return min((*self.lost, *[index for index, _ in self.torn]), default=0)

    @classmethod
    def of_mask(
        cls,
        survived: int,
        count: int,
        torn: tuple[tuple[int, int], ...] = (),
        stale: tuple[int, ...] = (),
    ) -> SurvivorSet:
        """Return the survivor set of ``count`` pieces whose bits are set in ``survived``."""
        missing = (1 << count) - 1 & ~survived
        if missing.bit_count() * _SPARSE <= count:
            return cls(tuple(members(missing)), torn, stale)
        bits = f"{missing:b}"[::-1]
        return cls(tuple([index for index, bit in enumerate(bits) if bit == "1"]), torn, stale)

    def mask(self, count: int) -> int:
        """Return the survivors as the bits of an integer."""
        survived = (1 << count) - 1
        for index in self.lost:
            survived &= ~(1 << index)
        return survived


def members(pieces: int) -> Iterator[int]:
    """Yield the indexes of a set of pieces, which is the bits of an integer."""
    while pieces:
        lowest = pieces & -pieces
        yield lowest.bit_length() - 1
        pieces ^= lowest


def closed(ordering: Ordering, survived: int) -> int:
    """Return ``survived`` without the pieces of which a predecessor is missing."""
    missing = ~survived
    for index, before in enumerate(ordering.order):
        if before & missing:
            missing |= 1 << index
    return ~missing


def is_tearable(micro: MicroOperation, model: PersistenceModel) -> TypeGuard[WriteBlock]:
    """Return whether a piece can survive as a prefix of its bytes.

    A whole call that is kept because of its length cannot.
    """
    if not (model.torn_units and isinstance(micro, WriteBlock) and len(micro.data) > 1):
        return False
    return not isinstance(model, ReducedModel) or len(micro.data) <= model.unit_bytes


def can_tear(ordering: Ordering, survived: int, index: int) -> bool:
    """Return whether a surviving write may be torn.

    The model must tear, and no surviving piece may need the write.
    """
    return is_tearable(ordering.micros[index], ordering.model) and (
        not any(
            needs >> index & 1
            for later, needs in enumerate(ordering.needs)
            if later > index and survived >> later & 1
        )
    )


def can_be_stale(ordering: Ordering, survived: int, index: int) -> bool:
    """Return whether the place of a lost write may show the bytes from before its allocation.

    Its inode must have survived, and so must a truncation that freed the place.
    """
    micro = ordering.micros[index]
    if survived >> index & 1 or not isinstance(micro, WriteBlock):
        return False
    for needed in (ordering.creation(micro.number), ordering.truncation_before[index]):
        if needed is not None and not survived >> needed & 1:
            return False
    match ordering.model.stale_bytes:
        case StaleBytes.NOWHERE:
            return False
        case StaleBytes.NEW_BLOCKS:
            return micro.fresh and micro.appended
        case StaleBytes.ANYWHERE:
            return micro.appended


def check_legal(ordering: Ordering, survivors: SurvivorSet) -> None:
    """Raise ``HarnessError`` unless the model allows a survivor set."""
    lost, torn, stale = survivors
    if not (lost or torn or stale):
        return
    count = len(ordering.micros)
    named = [*lost, *[index for index, _ in torn], *stale]
    if min(named) < 0 or max(named) >= count:
        raise HarnessError(f"{survivors} has an index outside the {count} unsynced pieces")
    survived = survivors.mask(count)
    if closed(ordering, survived) != survived:
        raise HarnessError(f"model {ordering.model.name} does not allow the loss of {lost}")
    for index, kept in torn:
        micro = ordering.micros[index]
        tearable = survived >> index & 1 and can_tear(ordering, survived, index)
        if not (tearable and isinstance(micro, WriteBlock) and 0 < kept < len(micro.data)):
            raise HarnessError(
                f"model {ordering.model.name} cannot tear {micro} after {kept} bytes"
            )
    for index in stale:
        if not can_be_stale(ordering, survived, index):
            raise HarnessError(
                f"model {ordering.model.name} has no stale bytes for {ordering.micros[index]}"
            )
