"""Limits: how many states of each crash point an exploration builds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from powercut.seconds import FORM, is_time
from sim.errors import HarnessError

_LEAST: Final = {"states_per_point": 1, "samples": 0, "nested": 0}


class Engine(StrEnum):
    """The way in which the states of a crash point are decided."""

    BRUTE = "brute"
    """Each state is built; where there are too many, a sample."""
    LAZY = "lazy"
    """None is built: the check decides as much of the disk as it reads. Where that is impossible,
    as ``BRUTE``."""
    AUTO = "auto"
    """As ``BRUTE``; as ``LAZY`` where that would be a sample without a failure. If the workload or
    the check is interposed, ``LAZY`` is tried when a crash point has more than 256 states and a
    few states of each crash point have passed, and about 2,048 states of a model are checked at
    most, spread evenly over the workload. Once an image has failed and others are left out, about
    512 more are checked. Images that such a check reads equally are checked once."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the work of ``explore``.

    ``states_per_point`` is the largest number of states of one crash point that are all
    built. Where there are more, ``explore`` builds the representative ones and ``samples``
    that are drawn with ``seed``. ``nested`` is the number of times that a crash may hit the
    operations of the check itself, which are the recovery. ``timeout`` is the time in seconds
    that an interposed workload, and each interposed check, may take. With ``strict`` they may not
    read the clock or start threads either, so that every run of them is the same.

    The work for one journal is bounded and spread evenly over it: where crash points have more
    than 48 unsynced pieces, some are passed over. Beyond 2 MiB of unsynced data, only some writes
    are lost sector by sector, and the others in halves or as a whole. Both make an exploration
    ``sampled``.

    ``engine`` decides whether states are built (``Engine``).
    """

    states_per_point: int = 4096
    samples: int = 256
    seed: int = 0
    nested: int = 0
    timeout: float = 20.0
    engine: Engine = Engine.AUTO
    strict: bool = False

    def __post_init__(self) -> None:
        """Raise ``HarnessError`` for an unknown engine, and for a value that is out of range."""
        if self.engine not in set(Engine):
            known = ", ".join(Engine)
            raise HarnessError(f"unknown engine {self.engine!r}; known are {known}")
        if not is_time(self.timeout):
            raise HarnessError(f"timeout is {self.timeout!r} and must be {FORM}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not _is_whole(value) or value < least:
                raise HarnessError(
                    f"{name} is {value!r} and must be a whole number, at least {least}"
                )
        if not _is_whole(self.seed):
            raise HarnessError(f"seed is {self.seed!r} and must be a whole number")
        if not isinstance(self.strict, bool):
            raise HarnessError(f"strict is {self.strict!r} and must be True or False")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
