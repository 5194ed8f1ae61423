"""The first error of several pieces of work, each of which may fail without the others."""

from __future__ import annotations

from types import TracebackType


class FirstError:
    """A context, used several times, that keeps the first exception and suppresses all of them.

    Those that end the program, such as ``KeyboardInterrupt``, are not suppressed.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        del kind, traceback
        self.note(error)
        return isinstance(error, Exception)

    def note(self, error: BaseException | None) -> None:
        """Keep an exception if it is the first."""
        if self.error is None and isinstance(error, Exception):
            self.error = error
