"""Counting: the number of survivor sets that a model allows at one power cut."""

from __future__ import annotations

from typing import Final

from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import Progress, undecided

MOST_STEPS: Final = 2_000
"""Steps of one count, after which a group of pieces counts as one survivor set."""


def survivor_sets(layer: Layer, tears: int) -> int:
    """Return the number of survivor sets with at most ``tears`` torn pieces, or fewer.

    It is exact unless pieces depend on one another in a way that takes too many steps.
    """
    free = ((1 << len(layer.micros)) - 1) >> layer.durable << layer.durable
    if tears >= len(layer.micros):
        return _Counter(layer).of(undecided(layer), free)
    assert tears <= 1, tears
    whole = _Counter(layer).of(undecided(layer, 0), free)
    return whole if not tears else whole + _torn_once(layer, free)


def _torn_once(layer: Layer, free: int) -> int:
    """Return the number of survivor sets in which exactly one piece is torn."""
    total = 0
    for index, length in enumerate(layer.lengths):
        torn = undecided(layer, 1).limit(layer, index, 1, 1) if length > 1 else None
        if torn is not None:
            total += (length - 1) * _Counter(layer).of(torn, free)
    return total


class _Counter:
    """Counts the completions of a progress, each group of dependent pieces by itself."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._counts: dict[tuple[int, int], int] = {}
        self._steps = MOST_STEPS

    def of(self, state: Progress, pieces: int) -> int:
        """Return the number of completions in these pieces."""
        layer, total, left = self._layer, 1, 0
        for index in _members(pieces):
            if not state.survived >> index & 1 and (
                self._is_free(state, index) or state.can_be_stale(layer, index)
            ):
                left |= 1 << index
        while left:
            group = self._group(left)
            left &= ~group
            total *= self._of_group(state, group)
        return total

    def _is_free(self, state: Progress, index: int) -> bool:
        low, high = state.of(self._layer, index)
        return low < high

    def _group(self, pieces: int) -> int:
        """Return one of these pieces, and all that depend on it or on which it depends."""
        group, added = 0, pieces & -pieces
        while added:
            group |= added
            reached = 0
            for index in _members(added):
                reached |= self._neighbours(index)
            added = reached & pieces & ~group
        return group

    def _neighbours(self, index: int) -> int:
        layer = self._layer
        found = layer.order[index] | layer.followers[index]
        for needed in layer.stale.get(index, ()):
            found |= 1 << needed
        for stale, needed_by in layer.stale.items():
            if index in needed_by:
                found |= 1 << stale
        return found

    def _of_group(self, state: Progress, group: int) -> int:
        key = (group, state.lost & group)
        if key not in self._counts:
            self._steps -= 1
            self._counts[key] = self._divided(state, group) if self._steps > 0 else 1
        return self._counts[key]

    def _divided(self, state: Progress, group: int) -> int:
        """Count by the fates of the piece with which most others are connected."""
        layer = self._layer
        pivot = max(_members(group), key=lambda each: (self._neighbours(each) & group).bit_count())
        ways: list[tuple[int, Progress | None]]
        if self._is_free(state, pivot):
            length = layer.lengths[pivot]
            ways = [
                (1, state.limit(layer, pivot, length, length)),
                (1, state.limit(layer, pivot, 0, 0)),
            ]
            if length > 1 and state.tears:
                ways.append((length - 1, state.limit(layer, pivot, 1, 1)))
        else:
            ways = [(1, state.without_stale(pivot)), (1, state.with_stale(layer, pivot))]
            group &= ~(1 << pivot)
        return sum(times * self.of(way, group) for times, way in ways if way is not None)


def _members(pieces: int) -> list[int]:
    found = []
    while pieces:
        lowest = pieces & -pieces
        found.append(lowest.bit_length() - 1)
        pieces ^= lowest
    return found
