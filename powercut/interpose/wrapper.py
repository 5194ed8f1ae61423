"""The types of the wrappers, and their tests of descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.name_calls import OWN_DESCRIPTOR

Real = Callable[..., Any]
"""A function of ``os`` or ``fcntl``."""
Routed = Callable[..., Any]
"""The function in its place, which takes the router first."""


def is_of_disk(fd: Any) -> bool:
    """Return whether a descriptor, or an object with ``fileno()``, is one of the disk."""
    if type(fd) is int:
        return fd >= FIRST_DESCRIPTOR
    if not hasattr(fd, "fileno"):
        return False
    number = fd.fileno()
    return isinstance(number, int) and number >= FIRST_DESCRIPTOR


def is_own_descriptor(path: str) -> bool:
    """Return whether ``path`` names a descriptor of the disk as ``link`` takes it."""
    found = OWN_DESCRIPTOR.fullmatch(path)
    return found is not None and int(found[1]) >= FIRST_DESCRIPTOR
