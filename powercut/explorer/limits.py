"""Limits: how many states of each crash point an exploration builds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the work of ``explore``.

    ``states_per_point`` is the largest number of states of one crash point that are all
    built. Where there are more, ``explore`` builds the representative ones and ``samples``
    that are drawn with ``seed``. ``nested`` is the number of times that a crash may hit the
    operations of the check itself, which are the recovery. ``timeout`` is the time in seconds
    that an interposed workload, and each interposed check, may take.

    Beyond some millions of pieces that were applied, crash points with many unsynced pieces are
    thinned, and beyond 2 MiB of unsynced data in one file, writes are lost as a whole.
    """

    states_per_point: int = 4096
    samples: int = 256
    seed: int = 0
    nested: int = 0
    timeout: float = 20.0
