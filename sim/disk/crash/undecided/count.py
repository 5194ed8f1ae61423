"""Counting: the number of survivor sets that a model allows at one power cut."""

from __future__ import annotations

from typing import Final

from sim.disk.crash.survivor_set import members
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import Progress, undecided

MOST_STEPS: Final = 2_000
"""Steps of one count, after which a group of pieces counts as one survivor set."""

MOST_LEVELS: Final = 60
"""Pieces that are decided one after the other, after which a group counts as one as well."""

PIECES_PER_STEP: Final = 64
"""A step of a larger group counts as several."""


class SurvivorSets:
    """Counts survivor sets with at most ``tears`` torn pieces, in at most ``steps`` steps.

    A number is exact unless pieces depend on one another in a way that takes more than
    ``MOST_STEPS``, or all numbers together more than ``steps``. Then it is too small.
    """

    def __init__(self, tears: int, steps: int) -> None:
        self._tears = tears
        self._steps = steps

    def of(self, layer: Layer) -> int:
        """Return the number of survivor sets of one power cut."""
        counter = _Counter(layer, min(self._steps, MOST_STEPS))
        total = counter.whole(self._tears)
        if 0 < self._tears < len(layer.micros):
            total += counter.torn_once()
        self._steps -= counter.steps
        return total


class _Counter:
    """Counts the completions of a progress, each group of dependent pieces by itself."""

    def __init__(self, layer: Layer, most_steps: int) -> None:
        self.steps = 0
        self._layer = layer
        self._count = len(layer.micros)
        self._free = ((1 << self._count) - 1) >> layer.durable << layer.durable
        self._most_steps = most_steps
        self._counts: dict[tuple[int, int], int] = {}
        self._level = 0

    def whole(self, tears: int) -> int:
        """Return the number of survivor sets: any piece torn, or none if not all may be."""
        return self.of(undecided(self._layer, tears if tears >= self._count else 0), self._free)

    def torn_once(self) -> int:
        """Return the number of survivor sets in which exactly one piece is torn."""
        layer, total = self._layer, 0
        for index, length in enumerate(layer.lengths):
            torn = undecided(layer, 1).limit(layer, index, 1, 1) if length > 1 else None
            if torn is not None:
                self._counts.clear()
                total += (length - 1) * self.of(torn, self._free)
        return total

    def of(self, state: Progress, pieces: int) -> int:
        """Return the number of completions in these pieces."""
        layer, total, left = self._layer, 1, 0
        for index in members(pieces):
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
            for index in members(added):
                reached |= self._layer.neighbours[index]
            added = reached & pieces & ~group
        return group

    def _of_group(self, state: Progress, group: int) -> int:
        key = (group, state.lost & group)
        if key not in self._counts:
            if self.steps >= self._most_steps or self._level >= MOST_LEVELS:
                return 1
            self.steps += 1 + group.bit_count() // PIECES_PER_STEP
            self._level += 1
            self._counts[key] = self._divided(state, group)
            self._level -= 1
        return self._counts[key]

    def _divided(self, state: Progress, group: int) -> int:
        """Decide one piece that leaves small groups, and add up the counts of each decision."""
        layer = self._layer
        pivot = self._pivot(group)
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

    def _pivot(self, group: int) -> int:
        """Return the piece in the middle of a chain, else the one with most neighbours."""
        order, followers = self._layer.order, self._layer.followers

        def rank(index: int) -> tuple[int, int]:
            before, after = (
                (order[index] & group).bit_count(),
                (followers[index] & group).bit_count(),
            )
            return min(before, after), (self._layer.neighbours[index] & group).bit_count()

        return max(members(group), key=rank)
