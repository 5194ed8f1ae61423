"""Interposers: the crash counter and the fault injectors, between a program and its disk."""

from __future__ import annotations

from typing import Protocol

from sim.disk.cache.operation import Operation


class Interposer(Protocol):
    """Observes, replaces or refuses each operation of a disk.

    A disk has at most one; interposers that compose call the next one themselves.
    """

    def before(self, operation: Operation, number: int) -> Operation:
        """Return the operation to carry out as number ``number`` (from 1).

        Return ``operation`` itself, or a replacement: a shorter ``Write``, a ``FailedSync``.
        Raise ``OSError`` to refuse it, or ``SimulatedCrash``; nothing is changed then.
        """
        ...

    def after(self, operation: Operation, number: int) -> None:
        """Observe an operation that was carried out; may raise ``SimulatedCrash`` only."""
        ...

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Return the bytes that a read of ``data`` at ``offset`` gives: fewer, or damaged.

        Raise ``OSError`` to fail the read.
        """
        ...


class DescriptorInterposer(Protocol):
    """Observes descriptors as they are opened and closed, which changes nothing on the disk."""

    def opening(self, path: str, descriptors: int) -> None:
        """Observe an open while ``descriptors`` are open; raise ``OSError`` to refuse it."""
        ...

    def closing(self, path: str, inode: int) -> None:
        """Observe a close whose descriptor is gone; raise ``OSError`` to report a late error."""
        ...
