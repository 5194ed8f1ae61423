"""The time of one call of a check that runs in a process of its own, and the calls that took more.

A check that does not end after one crash may not end after many. The first call has the whole
time; after it a call has a second, or more if other calls have taken long.
"""

from __future__ import annotations

from mmap import mmap
from struct import Struct
from typing import Final

_SHARED: Final = Struct("<dQ")
_LEAST_S: Final = 1.0
_FACTOR: Final = 10.0
"""A call has at least this many times as long as the longest one that has ended."""


class CheckTime:
    """The time of one call, at most ``most`` seconds; this process and its forks share it.

    ``endless`` is the number of calls on whole images that have not ended in their time.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        # Two forks that write at once may lose a number: one call more is made.
        self._shared = mmap(-1, _SHARED.size)
        self._has_overrun = mmap(-1, 1)

    @property
    def seconds(self) -> float:
        """The time of the next call."""
        if not self._has_overrun[0]:
            return self._most
        longest, _ = self._read()
        return min(self._most, max(_LEAST_S, _FACTOR * longest))

    @property
    def endless(self) -> int:
        return self._read()[1]

    def ended(self, seconds: float) -> None:
        """Note that a call has ended after so many seconds."""
        longest, endless = self._read()
        if seconds > longest:
            self._shared[:] = _SHARED.pack(seconds, endless)

    def overrun(self, *, counts: bool) -> None:
        """Note that a call has not ended in its time, and count it if it ``counts``."""
        self._has_overrun[0] = 1
        longest, endless = self._read()
        if counts:
            self._shared[:] = _SHARED.pack(longest, endless + 1)

    def _read(self) -> tuple[float, int]:
        longest, endless = _SHARED.unpack(self._shared[:])
        return longest, endless
