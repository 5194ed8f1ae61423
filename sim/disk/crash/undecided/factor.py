"""Factors: a few ways in which pieces may be decided, kept together as long as nothing asks.

A recovery unit divides a box by everything that it reads. Parts with the same result differ only
for code that reads the same places as well. So these parts become one box again, in which the
pieces that differ are undecided, and a factor that has the ways. Only a later question that
depends on one of these pieces divides the box by the ways.

The pieces of a factor depend on no other piece that is undecided. Therefore each way can be
combined with each decision on the others, and the box is not empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeAlias

from sim.disk.crash.survivor_set import members
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import UNLIMITED, Progress

States: TypeAlias = tuple[Progress, ...]
"""The progress of each layer."""

_MANY_TEARS = UNLIMITED >> 1


class Factor(NamedTuple):
    """The ways in which the pieces in ``pieces``, a set for each layer, are decided.

    ``before`` is the progress that all of them have developed from. The plainest way is the
    first.
    """

    pieces: tuple[int, ...]
    before: States
    ways: tuple[States, ...]

    def has(self, level: int, piece: int) -> bool:
        """Return whether this piece of a layer is one of them."""
        return level < len(self.pieces) and bool(self.pieces[level] >> piece & 1)

    def applied(self, states: States, way: int) -> States:
        """Return the progress of all layers with one of the ways."""
        found = list(states)
        for level, pieces in enumerate(self.pieces):
            if pieces:
                found[level] = _with_part(
                    states[level], self.ways[way][level], pieces, self.before[level].tears
                )
        return tuple(found)


def _with_part(state: Progress, way: Progress, pieces: int, tears_before: int) -> Progress:
    """Return a progress in which these pieces are decided as in another one."""
    others = ~pieces
    parts = {index: part for index, part in state.parts.items() if not pieces >> index & 1}
    parts.update((index, part) for index, part in way.parts.items() if pieces >> index & 1)
    return Progress(
        survived=state.survived & others | way.survived & pieces,
        lost=state.lost & others | way.lost & pieces,
        parts=parts,
        stale=state.stale & others | way.stale & pieces,
        not_stale=state.not_stale & others | way.not_stale & pieces,
        tears=state.tears - (tears_before - way.tears),
    )


def factors_of(
    layers: Sequence[Layer], before: States, ways: Sequence[States]
) -> Iterator[tuple[States, Factor | None]]:
    """Yield these ways to develop ``before`` in groups, each as a progress and a factor.

    The progress has the decisions that the ways of a group share, the factor the others. Ways
    that differ in a piece on which undecided pieces depend, or that depends on them, are not in
    one group. A group of one way has no factor.
    """
    changed = [
        reduce(or_, (_changed(old, way[level]) for way in ways)) for level, old in enumerate(before)
    ]
    linked = [
        _linked(layer, old, pieces)
        for layer, old, pieces in zip(layers, before, changed, strict=True)
    ]
    groups: dict[object, list[States]] = {}
    for way in ways:
        key = tuple(_part(state, pieces) for state, pieces in zip(way, linked, strict=True))
        groups.setdefault(key, []).append(way)
    for group in groups.values():
        first = group[0]
        if len(group) == 1:
            yield first, None
            continue
        common = tuple(
            _with_part(old, state, pieces, state.tears)
            for old, state, pieces in zip(before, first, linked, strict=True)
        )
        yield common, Factor(tuple(_of(layers, common, group)), common, tuple(group))


def _of(layers: Sequence[Layer], before: States, ways: Sequence[States]) -> Iterator[int]:
    for level, layer in enumerate(layers):
        changed = reduce(or_, (_changed(before[level], way[level]) for way in ways))
        yield _with_dependent(layer, before[level], changed)


def _linked(layer: Layer, state: Progress, pieces: int) -> int:
    """Return those of ``pieces`` with an undecided neighbour that is not one of them."""
    others = ~(_decided(layer, state) | pieces)
    return sum(1 << index for index in members(pieces) if layer.neighbours[index] & others)


def _part(state: Progress, pieces: int) -> object:
    """Return the decisions on some pieces, as a value that can be compared."""
    parts = sorted(each for each in state.parts.items() if pieces >> each[0] & 1)
    sets = state.survived, state.lost, state.stale, state.not_stale
    return (*[each & pieces for each in sets], tuple(parts))


def keeps_tears(before: States, way: States) -> bool:
    """Return whether a way leaves as many torn pieces to the others as there may be."""
    return all(
        new.tears == old.tears or new.tears > _MANY_TEARS
        for old, new in zip(before, way, strict=True)
    )


def _changed(before: Progress, after: Progress) -> int:
    """Return the pieces of which different things are known."""
    found = before.survived ^ after.survived | before.lost ^ after.lost
    found |= before.stale ^ after.stale | before.not_stale ^ after.not_stale
    for index, part in after.parts.items():
        if before.parts.get(index) != part:
            found |= 1 << index
    return found


def _with_dependent(layer: Layer, state: Progress, pieces: int) -> int:
    """Return pieces, and all undecided ones that depend on one of them or on which it depends."""
    decided = _decided(layer, state)
    found, added = 0, pieces
    while added:
        found |= added
        reached = 0
        for index in members(added):
            reached |= layer.neighbours[index]
        added = reached & ~decided & ~found
    return found


def _decided(layer: Layer, state: Progress) -> int:
    """Return the pieces of which everything is known."""
    return state.survived | state.lost & ~_may_be_stale(layer, state)


def _may_be_stale(layer: Layer, state: Progress) -> int:
    """Return the pieces of which it may be undecided whether stale bytes show in their place."""
    return sum(1 << index for index in layer.stale) & ~(state.stale | state.not_stale)
