"""The facts of one execution: in memory, or in a spool if the execution is long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from system.recording.executions.fact import Fact, StoredFact, facts_in, lines_of
from system.recording.executions.spool import Extent, Spool

MOST_BYTES: Final = 1 << 20
"""The most bytes of facts that are kept in memory."""


class Facts(NamedTuple):
    """The facts of one moment: lines in ``runs`` of a spool, then ``lines``, which are in memory.

    Many wait for a checkpoint. Objects for their facts would be visited by each garbage collection.
    """

    spool: Spool | None
    runs: tuple[Extent, ...]
    lines: bytes

    def pieces(self) -> Iterator[bytes]:
        """Yield the lines of all facts in pieces; raises ``OSError`` if some cannot be read."""
        yield from self._stored()
        yield self.lines

    def all(self) -> Iterator[Fact]:
        """Return all facts, in memory as a whole; raises as ``pieces``."""
        # Damage to the spool is found by the crc of an extent, before its lines are parsed.
        return facts_in((b"".join(self.pieces()),))

    def _stored(self) -> Iterator[bytes]:
        for extent in self.runs:
            assert self.spool is not None
            yield from self.spool.read(extent)


class FactList:
    """The facts that an execution has so far; ``recent`` are those in memory.

    An execution is long if ``make_spool`` is set and its facts have more than ``most_bytes``, or
    one of them is stored.
    """

    __slots__ = ("_recent_bytes", "_runs", "_spool", "make_spool", "most_bytes", "recent")

    def __init__(self, facts: list[Fact]) -> None:
        self.recent = facts
        self.make_spool: Callable[[], Spool] | None = None
        self.most_bytes = MOST_BYTES
        self._spool: Spool | None = None
        self._runs: tuple[Extent, ...] = ()
        self._recent_bytes = sum([len(fact.encoded) for fact in facts])

    @property
    def is_long(self) -> bool:
        """Whether some of them are in a spool."""
        return self._spool is not None

    def now(self) -> Facts:
        """Return the facts as they are now; later ones do not change it."""
        return Facts(self._spool, self._runs, lines_of(self.recent))

    def append(self, fact: Fact | StoredFact) -> None:
        """Add the next fact."""
        if isinstance(fact, StoredFact):
            assert not self.recent, "store has moved them into the spool"
            self._runs = (*self._runs, *fact.line_parts)
            return
        self.recent.append(fact)
        self._recent_bytes += len(fact.encoded)
        if self._recent_bytes > self.most_bytes and self.make_spool is not None:
            try:
                self._spill()
            except OSError:
                # They stay in memory, like all later ones.
                self.make_spool = None

    def store(self, entry_type: int, encoded: Iterable[bytes]) -> StoredFact:
        """Write the next fact, of which the JSON comes in pieces, to the spool.

        Raises ``OSError``, and what ``encoded`` raises; then the fact is not stored.
        """
        self._spill()
        spool = self._opened()
        beginning = spool.write([Fact(entry_type, b"").line()[:-1]])
        extent = spool.write(encoded)
        return StoredFact(entry_type, spool, extent, (beginning, extent, spool.write([b"\n"])))

    def close(self) -> None:
        """Release the spool."""
        if self._spool is not None:
            self._spool.close()

    def _spill(self) -> None:
        """Move the recent facts into the spool; raises ``OSError`` with nothing moved."""
        if self.recent:
            run = self._opened().write((lines_of(self.recent),))
            self._runs = (*self._runs, run)
            self.recent, self._recent_bytes = [], 0

    def _opened(self) -> Spool:
        if self._spool is None:
            assert self.make_spool is not None, "only executions with a spool store facts"
            self._spool = self.make_spool()
        return self._spool
