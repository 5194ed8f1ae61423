"""Memory of long campaigns: fewer garbage collections, and freed pages given back.

A campaign of hours needs no more memory than one of minutes.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS_BETWEEN_COLLECTIONS: Final = 10_000
"""New objects between two collections; a lifetime of the agent runtime leaves some hundreds."""


def settle() -> None:
    """Give freed memory back, and exclude all objects that are left from garbage collection.

    Traversing modules and code again and again takes a tenth of a run of the agent runtime,
    and collecting more often than lifetimes end another fifteenth.

    One long run in a thousand needs several times the memory of the others, and the C library
    of Linux keeps it until ``malloc_trim`` is called.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def as_before() -> Iterator[None]:
    """At the end, undo what ``settle`` has done in the context."""
    thresholds = gc.get_threshold()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextmanager
def settled() -> Iterator[None]:
    """Settle the memory now, and undo it at the end."""
    with as_before():
        settle()
        yield
