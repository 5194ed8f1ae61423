"""Dropped pages: what a boot reads on the platter after it has dropped pages of its page cache."""

from __future__ import annotations

from collections.abc import Iterator

from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.after_crash import renumbered
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.question import FIRST_NEW, Answer, DroppedPages
from sim.disk.crash.undecided.unsynced_above import recoveries


def split_by_pages(
    box: Box, question: DroppedPages, model: PersistenceModel
) -> Iterator[tuple[Answer, Box]]:
    """Yield the parts of a box, each with the content that its survivor sets have there."""
    operations = renumbered(question.operations, box, FIRST_NEW)
    for lifetime in recoveries(box, operations, model):
        yield tuple(lifetime.dropped[-1].items()), lifetime.box
