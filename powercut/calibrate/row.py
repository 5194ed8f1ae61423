"""One line of a calibration file: a program, and every outcome that its crashes left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from powercut.calibrate.program import Call


@dataclass(frozen=True, slots=True)
class Program:
    """Calls on an empty file system, whose effects are made durable; then calls to crash."""

    setup: tuple[Call, ...]
    calls: tuple[Call, ...]


class ObservedOutcome(TypedDict):
    """An outcome that was observed when ``k`` calls had returned, in ``n`` places of the log.

    ``how`` is an image that showed it: position in the log, last flush, survivors of the writes
    since, and the torn one with its bytes.
    """

    k: int
    out: dict[str, str]
    n: int
    how: list[object]


class Row(TypedDict):
    """A program that was run, with its errnos, and the outcomes of its crash images.

    ``marks`` are the lengths of the log when each call had returned. ``mount_failed`` are images
    that the kernel refused to mount.
    """

    fs: str
    kernel: str
    setup: list[list[str | int]]
    ops: list[list[str | int]]
    results: list[str | None]
    marks: list[int]
    log: list[list[str | int]]
    images: int
    mount_failed: list[list[object]]
    seen: list[ObservedOutcome]
    seed: int
    seconds: float
