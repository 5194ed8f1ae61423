"""What a campaign asks of memory: what stays is left alone, and what goes is given back.

A campaign of hours is as small as one of minutes.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS_OF_LIFETIMES: Final = 10_000
"""How many new objects call for a collection; a lifetime of the runtime leaves some hundreds."""


def give_back() -> None:
    """Give freed memory back to the operating system.

    One long run in a thousand needs several times what the others do, and the C library of
    Linux keeps that for ever unless it is asked. Elsewhere nothing is asked.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def settled() -> Iterator[None]:
    """Leave what is there already out of every collection: modules, code, and all that lasts.

    Going through them again and again takes a tenth of a run of the runtime, and looking for
    garbage before a lifetime can have ended another fifteenth.
    """
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_OF_LIFETIMES, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
