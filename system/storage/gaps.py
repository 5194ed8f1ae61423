"""Gaps in a log whose entries are numbered: damage, or the end of a partly written group.

A gap is a run of bad bytes, or a number that is not the next. Each entry names the last number
that was known to be durable when it was written. If a later entry shows that the gap was durable,
the gap is damage, and the entries after it are kept. Otherwise it is the result of entries with
one common barrier, which reach the platter in any order, and the log ends at the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Numbered(Protocol):
    """An entry of a log; ``known_durable`` is below ``seq``."""

    @property
    def seq(self) -> int:
        """The number of the entry."""
        ...

    @property
    def known_durable(self) -> int:
        """The last number that was known to be durable when the entry was written."""
        ...


class Gap(NamedTuple):
    """The bytes from the offset ``start`` to the good entry at index ``position``."""

    position: int
    start: int
    reason: str


class Cut(NamedTuple):
    """The end of a log: the first ``kept`` entries stay.

    ``gap`` is the gap at which it ends, or None if nothing is cut; entries of the gap up to the
    number ``proof`` were durable.
    """

    kept: int
    gap: Gap | None = None
    proof: int = 0


def find_cut(entries: Sequence[Numbered], gaps: Sequence[Gap], later_proof: int = 0) -> Cut:
    """Return the end of a log with these gaps, in their order.

    ``later_proof`` is the last number that is known to be durable from elsewhere.
    """
    cut = Cut(len(entries))
    # From the last gap to the first. Dropped entries prove nothing about the kept ones, or the
    # next recovery, which does not find them, would decide otherwise.
    proof, end = later_proof, len(entries)
    for gap in reversed(gaps):
        proof = max([proof, *(entry.known_durable for entry in entries[gap.position : end])])
        end = gap.position
        if proof < entries[gap.position].seq - 1:
            cut = Cut(gap.position, gap, max(cut.proof, proof))
            proof = later_proof
    return cut
