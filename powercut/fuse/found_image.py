"""The images that a search has found: their ranks, and the choice of those that are checked."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from faults.crash_point import CrashPoint
from powercut.explorer.crash_state import done_at
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.survivor_set import SurvivorSet, closed

Key = tuple[int, int]
"""The number of acknowledgements before the crash, and the key of the image."""


class Rank(IntEnum):
    """The classes of survivor sets, in the order in which their images are checked."""

    EXTREME = 0
    PREFIX = 1
    ONE_LOST = 2
    ONE_ALONE = 3
    OTHER = 4
    TORN = 5
    STALE = 6


_SHARES: Final = {
    Rank.EXTREME: 5,
    Rank.PREFIX: 4,
    Rank.ONE_LOST: 4,
    Rank.ONE_ALONE: 3,
    Rank.OTHER: 1,
    Rank.TORN: 2,
    Rank.STALE: 1,
}
"""The parts of the images that are checked."""


class Found(NamedTuple):
    """One image of one crash point of a model.

    ``order`` counts the images of a rank at a point. It begins far below 0 right after an
    acknowledgement, where all states are new, and a little below 0 behind a series of writes.
    """

    key: Key
    rank: Rank
    order: int
    model: str
    crash: CrashPoint
    entries: int

    @property
    def done(self) -> int:
        """The number of operations that are complete at the crash."""
        return done_at(self.crash)

    @property
    def losses(self) -> int:
        """The number of pieces that a power cut loses or tears."""
        return losses_of(self.crash)


def losses_of(crash: CrashPoint) -> int:
    """Return the number of pieces that a power cut loses or tears, 0 for a kill."""
    return len(crash.survivors.lost) + len(crash.survivors.torn)


def rank_of(ordering: Ordering, survivors: SurvivorSet) -> Rank:
    """Return the class of a survivor set."""
    count = len(ordering.micros)
    if survivors.stale:
        return Rank.STALE
    if survivors.torn:
        return Rank.TORN
    lost = survivors.lost
    if not lost or len(lost) == count:
        return Rank.EXTREME
    if lost[0] == count - len(lost):
        return Rank.PREFIX
    everything, survived = (1 << count) - 1, survivors.mask(count)
    if survived == closed(ordering, everything & ~(1 << lost[0])):
        return Rank.ONE_LOST
    last = survived.bit_length() - 1
    if survived == ordering.order[last] | 1 << last:
        return Rank.ONE_ALONE
    return Rank.OTHER


def best(images: Iterable[Found], most: int) -> list[Found]:
    """Return the images that find most bugs: a share of each rank.

    Of a rank, those after acknowledgements come first, then one of each crash point in turn, the
    points evenly spread.
    """
    ranks: dict[Rank, list[Found]] = {rank: [] for rank in Rank}
    for found in images:
        ranks[found.rank].append(found)
    chosen: list[Found] = []
    left: list[Found] = []
    for rank, those in ranks.items():
        those.sort(key=lambda found: (found.order, _spread(found.done)))
        share = most * _SHARES[rank] // sum(_SHARES.values())
        chosen += those[:share]
        left += those[share:]
    return (chosen + left)[:most]


def _spread(number: int) -> int:
    """Return the number with its bits reversed, by which any few of a series lie far apart."""
    return int(f"{number:032b}"[::-1], 2)
