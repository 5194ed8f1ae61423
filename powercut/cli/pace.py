"""The pace of an exploration: its progress on a terminal, a heartbeat in a pipe, its deadline."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import click
from rich.console import Console
from rich.status import Status

from powercut.cli.interruption import Interruption
from powercut.cli.overrun import Overrun
from powercut.counted import counted
from powercut.explorer.verdicts import Exploration

HEARTBEAT_SECONDS: Final = 15.0
_SHARE_OF_EXPLORING: Final = 0.6
"""The part of the time for the models if one has failed; the rest is for missing barriers."""


class Progress:
    """Shows how far the work is.

    On a terminal it is a line that changes. Otherwise a line is written to stderr every 15
    seconds, so that a log shows that something happens.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._last_line = time.monotonic()

    @contextmanager
    def shown(self, title: str) -> Iterator[None]:
        """Show progress while the context lasts, ``title`` at first."""
        if not self._console.is_terminal:
            yield
            return
        with self._console.status(title) as self._status:
            yield

    def show(self, text: str) -> None:
        """Replace the text; this is cheap."""
        now = time.monotonic()
        if self._status is not None:
            self._status.update(text)
        elif now - self._last_line >= HEARTBEAT_SECONDS:
            self._last_line = now
            click.echo(f"... {text}", err=True)


class Pace:
    """Shows how far the exploration of ``title`` is, and ends it when ``seconds`` are over.

    ``interruption`` ends it as well. A check that still runs then in this process is interrupted.
    """

    def __init__(
        self, console: Console, title: str, seconds: float | None, models: Sequence[str]
    ) -> None:
        self._progress = Progress(console)
        self._title = title
        self._models = models
        self._verb = ""
        now = time.monotonic()
        self._end = None if seconds is None else now + seconds
        self._end_of_exploring = None if seconds is None else now + seconds * _SHARE_OF_EXPLORING
        self._deadline = self._end
        self._has_failed = False
        self._is_stopped = False
        self._overrun = Overrun()
        self.interruption = Interruption(then=self._overrun.end)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the pace while the context lasts."""
        left = None if self._end is None else self._end - time.monotonic()
        with self.interruption.awaited(), self._overrun.bounded(left):
            yield

    def shown(self) -> AbstractContextManager[None]:
        """Show progress while the context lasts."""
        return self._progress.shown(self._title)

    def stop(self) -> None:
        """End the time, so that only the results so far are reported."""
        self._is_stopped = True

    def diagnose(self) -> None:
        """Begin the search for missing barriers, which may take the time that is left."""
        self._models = ()
        self._verb = ", searching for missing barriers"
        self._deadline = self._end

    def tick(self, found: Exploration, operation: int) -> bool:
        """Show the progress of an exploration; return False if its time is over."""
        now = time.monotonic()
        self._has_failed = self._has_failed or found.failed > 0
        if found.model.name in self._models:
            self._begin(found.model.name, now)
        unsafe = f", {found.failed:,} unsafe" if found.failed else ""
        self._progress.show(
            f"{self._title} on {found.model.name}{self._verb}: operation {operation:,} of "
            f"{found.operations:,}, {counted(found.states, 'state')}{unsafe}"
        )
        in_time = self._deadline is None or now < self._deadline
        return in_time and not self.interruption.happened and not self._is_stopped

    def _begin(self, model: str, now: float) -> None:
        """Give a model its share of the time that is left for the models."""
        self._models = self._models[self._models.index(model) + 1 :]
        end = self._end_of_exploring if self._has_failed else self._end
        if end is not None:
            left = end - now
            self._deadline = now + left / (len(self._models) + 1)
