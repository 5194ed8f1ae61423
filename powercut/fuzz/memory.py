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


def give_back() -> None:
    """Give freed memory back to the operating system.

    One long run in a thousand needs several times the memory of the others, and the C library
    of Linux keeps it until ``malloc_trim`` is called. On other systems this only collects
    garbage.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def settled() -> Iterator[None]:
    """Exclude all existing objects, such as modules and code, from garbage collection.

    Traversing them again and again takes a tenth of a run of the agent runtime, and
    collecting more often than lifetimes end another fifteenth.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
