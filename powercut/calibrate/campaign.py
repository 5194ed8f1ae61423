"""Records programs on several file systems in turn, then reduces the contradictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final, Protocol

from powercut.calibrate.random_program import random_program
from powercut.calibrate.reduction import reduce_calls
from powercut.calibrate.row import Program, Row
from powercut.calibrate.tally import Contradiction, Tally

_RECORDING_SHARE: Final = 0.75
"""The part of the time for recording; reductions get the remainder."""

_IMAGES_OF_REDUCTIONS: Final = 100
"""More than in the recording, because a smaller program must show one given outcome."""


class Records(Protocol):
    """Records programs on one file system: a ``Recorder``."""

    def record(self, program: Program, seed: int, most_images: int = ..., /) -> Row: ...


class Campaign:
    """One calibration. It can be stopped at any time; ``contradictions`` are valid then.

    ``clock`` returns seconds, and ``on_row`` is called with each row of a random program before
    it is judged.
    """

    def __init__(
        self,
        recorders: Mapping[str, Records],
        tally: Tally,
        clock: Callable[[], float],
        on_row: Callable[[Row], None],
    ) -> None:
        self._recorders = recorders
        self._tally = tally
        self._clock = clock
        self._on_row = on_row
        self._reduced: dict[tuple[str, str], Contradiction] = {}

    def run(self, first_seed: int, seconds: float) -> None:
        """Record programs from ``first_seed`` on, then reduce, for this time in all."""
        start = self._clock()
        self._record(first_seed, start + seconds * _RECORDING_SHARE)
        groups = self._tally.smallest_of_groups()
        for number, (found, _) in enumerate(groups):
            left = start + seconds - self._clock()
            self._reduce(found, self._clock() + left / (len(groups) - number))

    def contradictions(self) -> list[tuple[Contradiction, int]]:
        """Return one contradiction of each cause, reduced if there was time, and their number."""
        return [
            (self._reduced.get(found.group, found), size)
            for found, size in self._tally.smallest_of_groups()
        ]

    def _record(self, first_seed: int, end: float) -> None:
        for seed in count(first_seed):
            program = random_program(seed)
            for recorder in self._recorders.values():
                if self._clock() >= end:
                    return
                row = recorder.record(program, seed)
                self._on_row(row)
                self._tally.add(row)

    def _reduce(self, found: Contradiction, end: float) -> None:
        recorder = self._recorders[found.row["fs"]]

        def record(program: Program) -> Row:
            return recorder.record(program, found.row["seed"], _IMAGES_OF_REDUCTIONS)

        self._reduced[found.group] = reduce_calls(
            found, record, self._tally.contradiction, lambda: self._clock() < end
        )
