"""Progress: how far each piece of a layer has reached the platter, as far as that is decided.

The progress of a piece is a number of its bytes: its length if it survived, 0 if it was lost,
and between them if it was torn. The pieces that survived are closed under predecessors, those
that did not survive completely under followers, and no piece is of both kinds. Therefore every
progress can be completed to a legal survivor set: lose everything that is not decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from sim.disk.crash.survivor_set import SurvivorSet, members
from sim.disk.crash.undecided.layer import Layer

_NOTHING: Final[Mapping[int, tuple[int, int]]] = MappingProxyType({})
UNLIMITED: Final = 1 << 30


class Progress(NamedTuple):
    """The decided part of a survivor set of one layer.

    ``survived`` and ``lost`` are sets of pieces, as the bits of an integer. ``parts`` has the
    other pieces of which something is known: the least and the largest number of their bytes.
    ``stale`` are the lost pieces in whose place stale bytes show, ``not_stale`` those in whose
    place they do not. ``tears`` is the number of pieces that may still be torn.
    """

    survived: int = 0
    lost: int = 0
    parts: Mapping[int, tuple[int, int]] = _NOTHING
    stale: int = 0
    not_stale: int = 0
    tears: int = UNLIMITED

    def of(self, layer: Layer, index: int) -> tuple[int, int]:
        """Return the least and the largest progress of a piece."""
        if self.survived >> index & 1:
            return layer.lengths[index], layer.lengths[index]
        if self.lost >> index & 1:
            return 0, 0
        return self.parts.get(index) or (0, layer.lengths[index])

    def limit(self, layer: Layer, index: int, low: int, high: int) -> Progress | None:
        """Return the progress with that of one piece between ``low`` and ``high``.

        None if that contradicts what is decided.
        """
        least, largest = self.of(layer, index)
        length = layer.lengths[index]
        low, high = max(low, least), min(high, largest)
        was_torn = least > 0 and largest < length
        if not (self.tears or was_torn):
            low, high = (length if low else 0), (0 if high < length else length)
        if low > high:
            return None
        if (low, high) == (least, largest):
            return self
        survived, lost = self._spread(layer, index, low > 0 >= least, high < length == largest)
        if low == length:
            survived |= 1 << index
        elif not high:
            lost |= 1 << index
        decided = survived | lost
        parts = {each: part for each, part in self.parts.items() if not decided >> each & 1}
        if not decided >> index & 1:
            parts[index] = low, high
        is_torn = low > 0 and high < length
        tears = self.tears - (is_torn and not was_torn)
        return self._replace(survived=survived, lost=lost, parts=parts, tears=tears)

    def _spread(self, layer: Layer, index: int, begins: bool, breaks: bool) -> tuple[int, int]:
        """Return the sets ``survived`` and ``lost`` when more is known of one piece.

        A piece that ``begins`` has a byte on the platter, so its predecessors have survived.
        Of a piece that ``breaks`` a byte is missing, so its followers are lost. Neither
        contradicts what is decided, because that would have decided this piece as well.
        """
        survived, lost = self.survived, self.lost
        if begins:
            survived |= layer.order[index]
            broken = [each for each, (_, high) in self.parts.items() if high < layer.lengths[each]]
            assert not survived & lost, index
            assert not any(survived >> each & 1 for each in broken), index
        if breaks:
            lost |= layer.followers[index]
            begun = [each for each, (low, _) in self.parts.items() if low]
            assert not survived & lost, index
            assert not any(lost >> each & 1 for each in begun), index
        return survived, lost

    def with_stale(self, layer: Layer, index: int) -> Progress | None:
        """Return the progress with stale bytes in the place of a lost piece."""
        changed = self.limit(layer, index, 0, 0)
        for needed in layer.stale[index]:
            if changed is not None:
                changed = changed.limit(layer, needed, layer.lengths[needed], layer.lengths[needed])
        return None if changed is None else changed._replace(stale=changed.stale | 1 << index)

    def without_stale(self, index: int) -> Progress:
        """Return the progress without stale bytes in the place of a piece."""
        return self._replace(not_stale=self.not_stale | 1 << index)

    def can_be_stale(self, layer: Layer, index: int) -> bool:
        """Return whether it is undecided that stale bytes show in the place of a piece."""
        needed = layer.stale.get(index)
        if needed is None or (self.stale | self.not_stale) >> index & 1:
            return False
        return not self.of(layer, index)[0] and not any(
            self.of(layer, each)[1] < layer.lengths[each] for each in needed
        )

    def completed(self, layer: Layer) -> Progress:
        """Return the plainest complete progress: what may have survived has survived."""
        changed = self
        for index, length in enumerate(layer.lengths):
            low, high = changed.of(layer, index)
            if low == high:
                continue
            wanted = length if high == length else high if low else 0
            complete = changed.limit(layer, index, wanted, wanted)
            assert complete is not None, (self, index)
            changed = complete
        return changed

    def survivors(self, layer: Layer) -> SurvivorSet:
        """Return the survivor set of a complete progress; indexes are of unsynced pieces."""
        count, begin = len(layer.micros) - layer.durable, layer.durable
        torn = tuple((index - begin, part[0]) for index, part in sorted(self.parts.items()))
        survived = self.survived
        for index in self.parts:
            survived |= 1 << index
        stale = tuple(each - begin for each in members(self.stale))
        return SurvivorSet.of_mask(survived >> begin, count, torn, stale)


def undecided(layer: Layer, tears: int = UNLIMITED) -> Progress:
    """Return the progress at a crash of which nothing is known; ``tears`` bounds torn pieces."""
    return Progress(survived=(1 << layer.durable) - 1, tears=tears)


def everything(layer: Layer) -> Progress:
    """Return the progress with which every piece has survived."""
    return Progress(survived=(1 << len(layer.micros)) - 1)
