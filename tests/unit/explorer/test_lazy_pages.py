"""Pages that a check drops after a failed barrier, in the lazy engine."""

from __future__ import annotations

from sim.disk.cache.operation import DropPages, Resize
from sim.disk.crash.undecided.question import DroppedPages

_DROP = DropPages("/f", 2)


def test_questions_for_dropped_pages_do_not_depend_on_the_time() -> None:
    early, late = (DroppedPages.after([Resize("/f", 2, 9, 0, now_ns), _DROP]) for now_ns in (1, 2))
    assert early == late
    assert DroppedPages.after([Resize("/f", 2, 8, 0, 1), _DROP]) != early
    assert str(early) == "the dropped pages of inode 2"
