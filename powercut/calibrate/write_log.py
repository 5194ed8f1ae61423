"""The requests that a file system sent to its block device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from powercut.calibrate.block_image import BlockImage


@dataclass(frozen=True, slots=True)
class Write:
    """A write; the device may lose it, or a part of it, until the next flush has ended."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Flush:
    """All writes that had ended before are durable."""


LogEntry: TypeAlias = Write | Flush


@dataclass(frozen=True, slots=True)
class Survivors:
    """The writes of a log that a crash image has.

    All writes before entry ``flush`` (-1: no flush) and those at the positions ``unflushed``.
    ``torn`` is a position among these and the number of bytes of it that survive.
    """

    flush: int
    unflushed: tuple[int, ...] = ()
    torn: tuple[int, int] | None = None

    def sizes(self, log: list[LogEntry]) -> list[tuple[int, int]]:
        """Return position and surviving bytes of each write, in the order of the log."""
        flushed = [i for i in range(self.flush) if isinstance(log[i], Write)]
        sizes = []
        for position in (*flushed, *self.unflushed):
            entry = log[position]
            assert isinstance(entry, Write)
            is_torn = self.torn is not None and self.torn[0] == position
            sizes.append((position, self.torn[1] if self.torn and is_torn else entry.size))
        return sizes


@dataclass(slots=True)
class WriteLog:
    """The requests since ``start``, the blocks of the device at that time, with their data."""

    start: dict[int, bytes]
    entries: list[LogEntry] = field(default_factory=list)
    _data: list[bytes] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        """Append a write."""
        self.entries.append(Write(offset, len(data)))
        self._data.append(data)

    def flush(self) -> None:
        """Append a flush."""
        self.entries.append(Flush())
        self._data.append(b"")

    def image(self, survivors: Survivors) -> BlockImage:
        """Return the device with the writes that survive."""
        image = BlockImage(self.start)
        for position, size in survivors.sizes(self.entries):
            entry = self.entries[position]
            assert isinstance(entry, Write)
            image.write(entry.offset, self._data[position][:size])
        return image
