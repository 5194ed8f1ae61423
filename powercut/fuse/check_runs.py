"""Runs of the check on images, several at a time, until the time is over or too many hang."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from time import monotonic
from typing import TypeVar

from powercut.counted import counted
from powercut.explorer.built_explorer import MOST_ENDLESS
from powercut.explorer.judge import MOST_ENDLESS_IN_ALL
from powercut.explorer.ticker import Stopped
from powercut.fuse.checks_folder import checks_folder
from powercut.fuse.image_check import Checked, ImageCheck
from powercut.fuse.parallel import in_processes
from sim.disk.crash.image import Image

Item = TypeVar("Item")


class CheckRuns:
    """Runs a check in ``processes`` processes.

    ``show`` is called with a text for the user each time that a part of the work is done. A pass
    in which ``MOST_ENDLESS`` checks do not end leaves its other images out, and after
    ``MOST_ENDLESS_IN_ALL`` no check runs any more. ``endless`` is their number, 0 if no image was
    left out because of them.
    """

    def __init__(
        self,
        check: ImageCheck,
        processes: int,
        show: Callable[[str], None],
        is_over: Callable[[], bool],
    ) -> None:
        self.processes = processes
        self.show = show
        self._check = check
        self._is_over = is_over
        self._endless = 0
        self._has_left_out = False

    def of(self, images: Sequence[tuple[Image, int]]) -> Iterator[tuple[int, Checked]]:
        """Yield the place of each image with the result of its check, as they come.

        Raises ``Stopped`` as ``tick``.
        """
        processes = max(1, min(self.processes, len(images)))

        def work(folder: str, number: int) -> Iterator[tuple[int, Checked]]:
            checks = self._check.begin(folder)
            for place in range(number, len(images), processes):
                yield place, checks.check(*images[place])

        began = monotonic()
        with checks_folder() as folder:
            results = in_processes(processes, lambda number: work(folder, number), self.tick)
            with closing(results):
                endless = 0
                for done, (place, checked) in enumerate(results, 1):
                    endless += checked.is_endless
                    self._endless += checked.is_endless
                    yield place, checked
                    if len(images) > 1:
                        left = (monotonic() - began) / done * (len(images) - done)
                        self.show(f"checking images: {done:,} of {len(images):,}{_time_left(left)}")
                    if endless >= MOST_ENDLESS and done < len(images):
                        self._has_left_out = True
                        break

    @property
    def endless(self) -> int:
        return self._endless if self._has_left_out else 0

    @property
    def gave_up(self) -> bool:
        """Whether so many checks did not end that no more run."""
        return self._endless >= MOST_ENDLESS_IN_ALL

    @property
    def are_over(self) -> bool:
        """Whether there is no time for another check."""
        return self.gave_up or self._is_over()

    def tick(self) -> None:
        """Raise ``Stopped`` if there is no time for another check."""
        if self.are_over:
            raise Stopped

    def in_time(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; raises ``Stopped`` as ``tick``, before each of them."""
        for each in items:
            self.tick()
            yield each


def _time_left(seconds: float) -> str:
    """Return how long the checks of a pass still take, with a remedy; nothing below a minute."""
    minutes = round(seconds / 60)
    return f", about {counted(minutes, 'minute')} left (-n N checks fewer)" if minutes else ""
