"""The crash images of a log of block requests: which writes each has.

At each position of the log the power may fail. Writes before the last flush are durable. Of the
writes since, any subset may be on the platter, so these are tried: none, all, all but one, one
alone, every subset of at most four, a few random ones, and all with the last torn between two
sectors. Images with equal content are one image, which may belong to several positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, product

from powercut.calibrate.block_image import SECTOR_BYTES
from powercut.calibrate.write_log import Flush, LogEntry, Survivors, Write
from sim.choices import Choices

_ALL_SUBSETS = 4
_RANDOM_SUBSETS = 4


@dataclass(slots=True)
class CrashImage:
    """One image and the positions of the log at which a power cut may leave it.

    At the positions ``complete`` it has every write, or no unflushed write.
    """

    survivors: Survivors
    positions: set[int] = field(default_factory=set)
    complete: set[int] = field(default_factory=set)


def crash_images(
    log: list[LogEntry], marks: Iterable[int], choices: Choices, most: int
) -> list[CrashImage]:
    """Return the crash images of ``log``, at most about ``most`` of them.

    A sample always has those that are complete at a position in ``marks`` (the lengths of the
    log when the calls of the program returned) or at the end: these are the likely ones.
    """
    found = list(_all_images(log, choices))
    if len(found) <= most:
        return found
    important = {*marks, len(log)}
    always = [image for image in found if image.complete & important]
    complete = [image for image in found if image.complete and not image.complete & important]
    others = [image for image in found if not image.complete]
    room = most * 2 // 3 - len(always)
    sample = always + _sample(complete, room, choices)
    return sample + _sample(others, most - len(sample), choices)


def _all_images(log: list[LogEntry], choices: Choices) -> Iterator[CrashImage]:
    contents = _Contents(log)
    found: dict[int, CrashImage] = {}
    flush = -1
    unflushed: list[int] = []
    for position in range(len(log) + 1):
        if position:
            if isinstance(log[position - 1], Flush):
                flush, unflushed = position - 1, []
                contents.flush(flush)
            else:
                unflushed.append(position - 1)
        for survivors in _survivor_sets(log, flush, unflushed, choices):
            image = found.setdefault(contents.key(survivors), CrashImage(survivors))
            image.positions.add(position)
            is_whole = len(survivors.unflushed) == len(unflushed) and survivors.torn is None
            if is_whole or not survivors.unflushed:
                image.complete.add(position)
    yield from found.values()


def _survivor_sets(
    log: list[LogEntry], flush: int, unflushed: Sequence[int], choices: Choices
) -> Iterator[Survivors]:
    yield Survivors(flush, tuple(unflushed))
    if not unflushed:
        return
    yield Survivors(flush)
    count = len(unflushed)
    if count <= _ALL_SUBSETS:
        for bits in product((False, True), repeat=count):
            yield Survivors(flush, tuple(compress(unflushed, bits)))
    else:
        for i in range(count):
            yield Survivors(flush, (*unflushed[:i], *unflushed[i + 1 :]))
        for position in unflushed:
            yield Survivors(flush, (position,))
        for _ in range(_RANDOM_SUBSETS):
            bits = tuple(bool(choices.integer("survives", 0, 1)) for _ in unflushed)
            yield Survivors(flush, tuple(compress(unflushed, bits)))
    last = log[unflushed[-1]]
    assert isinstance(last, Write)
    sectors = last.size // SECTOR_BYTES
    if sectors > 1:
        torn = SECTOR_BYTES * choices.integer("torn after", 1, sectors - 1)
        yield Survivors(flush, tuple(unflushed), (unflushed[-1], torn))


class _Contents:
    """Identifies equal images: by the write that each sector has, as a sum of hashes.

    The sum for the flushed writes is kept, so that a key costs the unflushed ones only.
    """

    def __init__(self, log: list[LogEntry]) -> None:
        self._log = log
        self._flushed: dict[int, int] = {}
        self._sum = 0
        self._next = 0

    def flush(self, until: int) -> None:
        """Take the writes before entry ``until`` as flushed."""
        for position in range(self._next, until):
            entry = self._log[position]
            if isinstance(entry, Write):
                for sector in _sectors(entry.offset, entry.size):
                    self._sum += self._change(sector, self._flushed.get(sector), position)
                    self._flushed[sector] = position
        self._next = until

    def key(self, survivors: Survivors) -> int:
        """Return the same number for the same content only."""
        written: dict[int, int] = {}
        for position in survivors.unflushed:
            entry = self._log[position]
            assert isinstance(entry, Write)
            is_torn = survivors.torn is not None and survivors.torn[0] == position
            size = survivors.torn[1] if survivors.torn and is_torn else entry.size
            written.update(dict.fromkeys(_sectors(entry.offset, size), position))
        total = self._sum
        for sector, position in written.items():
            total += self._change(sector, self._flushed.get(sector), position)
        return total

    @staticmethod
    def _change(sector: int, before: int | None, after: int) -> int:
        return hash((sector, after)) - (0 if before is None else hash((sector, before)))


def _sectors(offset: int, size: int) -> range:
    return range(offset // SECTOR_BYTES, (offset + size + SECTOR_BYTES - 1) // SECTOR_BYTES)


def _sample(images: list[CrashImage], size: int, choices: Choices) -> list[CrashImage]:
    pool = list(images)
    if size >= len(pool):
        return pool
    return [pool.pop(choices.integer("image", 0, len(pool) - 1)) for _ in range(max(0, size))]
