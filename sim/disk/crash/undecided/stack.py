"""Stacks: the layers above a platter, each with the progress of its pieces.

A question to a stack has an answer, or a ``Decision``: the first decision that is missing. The
answer uses nothing but what is decided, so it holds for every survivor set that agrees.
"""

from __future__ import annotations

from typing import NamedTuple

from sim.disk.cache.inode_table import Inodes
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import Progress


class Decision(NamedTuple):
    """A decision on one piece: its progress in each of ``limits``, or whether it is stale.

    The limits exclude one another, and cover all that is possible; the plainest comes first.
    """

    level: int
    piece: int
    limits: tuple[tuple[int, int], ...] = ()


class Stack(NamedTuple):
    """Layers from the bottom to the top, and their progress, above ``base``."""

    base: Inodes
    layers: tuple[Layer, ...]
    progress: tuple[Progress, ...]

    @property
    def top(self) -> int:
        """The level of the uppermost layer; -1 if there is none."""
        return len(self.layers) - 1

    def divided(self, decision: Decision) -> list[tuple[Progress, ...]]:
        """Return the progress of all layers after each outcome of a decision."""
        level, index, limits = decision
        layer, before = self.layers[level], self.progress[level]
        found: list[Progress | None]
        if limits:
            found = [before.limit(layer, index, *each) for each in limits]
        else:
            found = [before.without_stale(index), before.with_stale(layer, index)]
        below, above = self.progress[:level], self.progress[level + 1 :]
        return [(*below, each, *above) for each in found if each is not None]

    def survived(self, level: int, index: int) -> bool | Decision:
        """Return whether a piece that cannot be torn has survived, or the missing decision."""
        low, high = self.progress[level].of(self.layers[level], index)
        length = self.layers[level].lengths[index]
        if low == length:
            return True
        if high < length:
            return False
        return Decision(level, index, ((length, length), (0, length - 1)))
