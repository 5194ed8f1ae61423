"""The outcomes of one program, counted by the call that had returned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from powercut.calibrate.crash_images import CrashImage
from powercut.calibrate.program import Outcome, errno_name
from powercut.calibrate.row import ObservedOutcome


class Observations:
    """Outcomes of crash images. ``marks`` are the lengths of the log after each call."""

    def __init__(self, marks: Sequence[int]) -> None:
        self.refused: list[list[object]] = []
        self._marks = marks
        self._counts: Counter[tuple[int, str]] = Counter()
        self._how: dict[tuple[int, str], list[object]] = {}

    def add(self, image: CrashImage, outcome: Outcome) -> None:
        """Count ``outcome`` at every position of ``image``."""
        text = json.dumps(outcome, sort_keys=True)
        for position in sorted(image.positions):
            key = self._returned(position), text
            self._counts[key] += 1
            self._how.setdefault(key, [position, *_survivors(image)])

    def refuse(self, image: CrashImage, error: OSError) -> None:
        """Note that the kernel refused to mount ``image``."""
        self.refused.append([errno_name(error), *_survivors(image)])

    def outcomes(self) -> list[ObservedOutcome]:
        """Return the outcomes, sorted by the number of calls that had returned."""
        return [
            ObservedOutcome(k=key[0], out=json.loads(key[1]), n=count, how=self._how[key])
            for key, count in sorted(self._counts.items())
        ]

    def _returned(self, position: int) -> int:
        """Return the number of calls that had returned while the log was that short.

        Of several calls that wrote nothing, the last had returned.
        """
        return max((i for i, mark in enumerate(self._marks, 1) if mark <= position), default=0)


def _survivors(image: CrashImage) -> list[object]:
    survivors = image.survivors
    torn = None if survivors.torn is None else list(survivors.torn)
    return [survivors.flush, list(survivors.unflushed), torn]
