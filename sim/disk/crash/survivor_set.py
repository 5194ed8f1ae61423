"""Which unsynced micro-operations reached the platter when the power was cut.

A survivor set is written down by what is wrong with it, so that the plainest one, in
which nothing was lost, is empty. Numbers are positions in the list of unsynced
micro-operations at the crash, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sim.disk.crash.micro_operation import MicroOperation, WriteBlock, stale_bytes
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import StaleBytes
from sim.errors import HarnessError


class SurvivorSet(NamedTuple):
    """``lost``: what did not survive. ``torn``: pairs of a write and how many of its bytes
    did. ``stale``: lost writes whose place shows what was there before it was allocated.
    """

    lost: tuple[int, ...] = ()
    torn: tuple[tuple[int, int], ...] = ()
    stale: tuple[int, ...] = ()

    def applied(self, micros: Sequence[MicroOperation], begin: int = 0) -> Iterator[MicroOperation]:
        """Yield what happened to the platter, in order, from position ``begin`` on."""
        if not (self.lost or self.torn):
            yield from micros[begin:]
            return
        lost, torn = frozenset(self.lost), dict(self.torn)
        for index, micro in enumerate(micros[begin:], begin):
            if index in lost:
                if index in self.stale and isinstance(micro, WriteBlock):
                    yield micro._replace(data=stale_bytes(micro))
            elif index in torn and isinstance(micro, WriteBlock):
                yield micro._replace(data=micro.data[: torn[index]])
            else:
                yield micro

    @property
    def first_hurt(self) -> int:
        """Where the first is that did not survive whole; 0 if all of them did."""
        return min((*self.lost, *[index for index, _ in self.torn]), default=0)

    @classmethod
    def of_mask(
        cls,
        survived: int,
        count: int,
        torn: tuple[tuple[int, int], ...] = (),
        stale: tuple[int, ...] = (),
    ) -> SurvivorSet:
        """Return the survivor set of ``count`` whose members are the bits of ``survived``."""
        if survived == (1 << count) - 1:
            return cls((), torn, stale)
        lost = tuple([index for index in range(count) if not survived >> index & 1])
        return cls(lost, torn, stale)

    def mask(self, count: int) -> int:
        """Return the survivors as the bits of an integer."""
        survived = (1 << count) - 1
        for index in self.lost:
            survived &= ~(1 << index)
        return survived


def closed(ordering: Ordering, survived: int) -> int:
    """Return ``survived`` less everything whose predecessors are not all in it."""
    missing = ~survived
    for index, before in enumerate(ordering.order):
        if before & missing:
            missing |= 1 << index
    return ~missing


def can_tear(ordering: Ordering, survived: int, index: int) -> bool:
    """Say whether a surviving write may be torn: the model tears, and nothing came after it."""
    micro = ordering.micros[index]
    return (
        ordering.model.torn_units
        and isinstance(micro, WriteBlock)
        and len(micro.data) > 1
        and not any(
            needs >> index & 1
            for later, needs in enumerate(ordering.needs)
            if later > index and survived >> later & 1
        )
    )


def can_be_stale(ordering: Ordering, survived: int, index: int) -> bool:
    """Say whether a write that is not in ``survived`` may show what its place held before.

    Its inode must be there, and a truncation that freed its place must have happened.
    """
    micro = ordering.micros[index]
    if survived >> index & 1 or not isinstance(micro, WriteBlock):
        return False
    for needed in (ordering.creation(micro.number), ordering.truncation[index]):
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
    """Check a survivor set against the model; ``HarnessError`` names what it does not allow."""
    lost, torn, stale = survivors
    if not (lost or torn or stale):
        return
    count = len(ordering.micros)
    named = [*lost, *[index for index, _ in torn], *stale]
    if min(named) < 0 or max(named) >= count:
        raise HarnessError(f"survivor set {survivors} names more than {count} unsynced operations")
    survived = survivors.mask(count)
    if closed(ordering, survived) != survived:
        raise HarnessError(f"model {ordering.model.name} does not allow to lose {lost}")
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
