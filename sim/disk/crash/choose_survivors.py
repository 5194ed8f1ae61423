"""The choice of a survivor set: patterns that break programs first, random sets last.

The ranges of the choices do not depend on the unsynced pieces, and a number too large for
them wraps around. So a recorded power cut keeps its meaning after a small change of the
program under test.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from sim.choices import Choices, SeededChoices
from sim.disk.crash.micro_operation import (
    ForgetName,
    LinkName,
    MicroOperation,
    MoveName,
    UnlinkName,
    WriteBlock,
)
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.survivor_set import SurvivorSet, can_be_stale, can_tear, closed

_PLACES: Final = 63
_SEEDS: Final = 255
_NAMES: Final = (LinkName, MoveName, UnlinkName, ForgetName)


class Pattern(IntEnum):
    """The pieces that survive, the simplest pattern first."""

    ALL = 0
    NONE = 1
    PREFIX = 2
    WITHOUT_NAMES = 3
    WITHOUT_DATA = 4
    WITHOUT_EITHER = 5
    WITHOUT_ONE = 6
    ONLY_ONE = 7
    RANDOM = 8


_WITHOUT: Final[dict[Pattern, tuple[type[MicroOperation], ...]]] = {
    Pattern.ALL: (),
    Pattern.WITHOUT_NAMES: _NAMES,
    Pattern.WITHOUT_DATA: (WriteBlock,),
    Pattern.WITHOUT_EITHER: (WriteBlock, *_NAMES),
}


class Tear(IntEnum):
    """The form in which the last write that can be torn survives."""

    WHOLE = 0
    ALL_BUT_ONE_BYTE = 1
    ONE_BYTE = 2
    ANYWHERE = 3


def choose_survivors(choices: Choices, ordering: Ordering) -> SurvivorSet:
    """Choose a survivor set that the model allows; makes no choice if nothing is unsynced."""
    micros = ordering.micros
    if not micros:
        return SurvivorSet()
    survived = closed(ordering, _wanted(choices, ordering))
    torn = _torn(choices, ordering, survived)
    lost = tuple(index for index in range(len(micros)) if not survived >> index & 1)
    stale: tuple[int, ...] = ()
    could = tuple(index for index in lost if can_be_stale(ordering, survived, index))
    if could and choices.integer("stale", 0, 2) == 2:
        stale = could
    return SurvivorSet(lost, torn, stale)


def _wanted(choices: Choices, ordering: Ordering) -> int:
    """Return the survivors of a pattern, among which some may need pieces that are not."""
    count = len(ordering.micros)
    everything = (1 << count) - 1
    pattern = Pattern(choices.integer("survivors", 0, len(Pattern) - 1))
    if pattern in _WITHOUT:
        return everything & ~_of_kind(ordering.micros, *_WITHOUT[pattern])
    if pattern is Pattern.NONE:
        return 0
    if pattern is Pattern.RANDOM:
        source = SeededChoices(choices.integer("seed", 0, _SEEDS))
        return source.integer("", 0, everything)
    # The newest piece first: the latest operations of a program have the fewest barriers.
    place = count - 1 - choices.integer("place", 0, _PLACES) % count
    if pattern is Pattern.PREFIX:
        return (1 << place) - 1
    if pattern is Pattern.WITHOUT_ONE:
        return everything & ~(1 << place)
    return ordering.order[place] | 1 << place


def _of_kind(micros: list[MicroOperation], *kinds: type[MicroOperation]) -> int:
    return sum(1 << index for index, micro in enumerate(micros) if isinstance(micro, kinds))


def _torn(choices: Choices, ordering: Ordering, survived: int) -> tuple[tuple[int, int], ...]:
    for index in range(len(ordering.micros) - 1, -1, -1):
        if survived >> index & 1 and can_tear(ordering, survived, index):
            micro = ordering.micros[index]
            assert isinstance(micro, WriteBlock)
            kept = _kept_bytes(choices, len(micro.data))
            return ((index, kept),) if kept < len(micro.data) else ()
    return ()


def _kept_bytes(choices: Choices, size: int) -> int:
    match Tear(choices.integer("tear", 0, len(Tear) - 1)):
        case Tear.WHOLE:
            return size
        case Tear.ALL_BUT_ONE_BYTE:
            return size - 1
        case Tear.ONE_BYTE:
            return 1
        case Tear.ANYWHERE:
            return 1 + choices.integer("torn after", 0, 511) % (size - 1)
