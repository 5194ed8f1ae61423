"""How many different things there were, in bounded memory, and how many are still unseen.

Up to ``KEPT`` different digests the count is exact. Above, the ``KEPT`` smallest hashes are
a fair sample of all different ones, and where the sample ends tells how many there are
(Bar-Yossef et al., RANDOM 2002; Beyer et al., SIGMOD 2007), within 1.1 % two times in three.
How often each of the sample was seen is known exactly, so the share of what was seen once
is known as well: it estimates the chance that the next one is new (Good, Biometrika 1953).

The answer depends on what was added alone, not on the order or on who added it to whom.
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64_intdigest

KEPT: Final = 8192

_HASHES: Final = 1 << 64


class Distinct:
    """``seen`` is how many there were, equal ones included."""

    __slots__ = ("_limit", "_times", "seen")

    def __init__(self) -> None:
        self.seen = 0
        # All hashes below the limit, and how often each was seen.
        self._times: dict[int, int] = {}
        self._limit = _HASHES

    def add(self, digest: str) -> None:
        """Add one more."""
        self.seen += 1
        number = xxh3_64_intdigest(digest.encode("utf-8", "surrogatepass"))
        if number < self._limit:
            self._times[number] = self._times.get(number, 0) + 1
            if len(self._times) > 2 * KEPT:
                self._trim()

    def update(self, other: Distinct) -> None:
        """Add all that another count has seen."""
        self.seen += other.seen
        times = self._times
        for number, count in other._times.items():
            times[number] = times.get(number, 0) + count
        if min(self._limit, other._limit) < _HASHES:
            self._limit = limit = min(self._limit, other._limit)
            self._times = {number: count for number, count in times.items() if number < limit}
        self._trim()

    @property
    def exact(self) -> bool:
        """Whether the count is no estimate."""
        self._trim()
        return self._limit == _HASHES

    @property
    def count(self) -> int:
        """How many different ones there were."""
        self._trim()
        return self._scaled(len(self._times))

    @property
    def chance_of_new(self) -> float:
        """The chance, from 0 to 1, that the next one would be one that was never seen."""
        self._trim()
        once = sum(count == 1 for count in self._times.values())
        return min(1.0, self._scaled(once) / self.seen) if self.seen else 1.0

    def __str__(self) -> str:
        return f"{self.count:,}" if self.exact else f"~{self.count:,}"

    def _scaled(self, number: int) -> int:
        return number * _HASHES // self._limit

    def _trim(self) -> None:
        """Let the limit be the smallest hash that is not among the ``KEPT`` smallest."""
        if len(self._times) > KEPT:
            smallest = sorted(self._times)
            self._limit = smallest[KEPT]
            self._times = {number: self._times[number] for number in smallest[:KEPT]}
