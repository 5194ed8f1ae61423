"""The write-ahead log of SQLite, read for damage that SQLite does not report.

SQLite ends the log at the first frame that it refuses: its salts differ from those of the header,
or its checksum, which covers all frames before it, is wrong. After a power cut that is the
transaction that was not synced yet. A flipped bit in the middle looks the same, and every commit
behind it is lost silently.

With ``synchronous=FULL`` a commit is durable before the next transaction writes a frame. So a
refused frame is damaged if a frame behind it continues the checksum of a commit. Frames that no
commit precedes in this way prove nothing: a power cut, a rolled back transaction, or an earlier
generation of the log leaves them, in any mixture.

A header that SQLite refuses is damaged if such frames are behind it, unless a power cut can have
torn it. SQLite writes a header over another one only after a checkpoint, with a count and a first
salt that are greater by one, and syncs it before the frames. (The format:
https://www.sqlite.org/fileformat2.html#walformat)
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Final, Literal, NamedTuple, TypeAlias

HEADER_BYTES: Final = 32
FRAME_HEADER_BYTES: Final = 24

_MAGIC: Final = 0x377F0682
"""Its last bit is set if the checksums are of big-endian words."""
_VERSION: Final = 3_007_000
_PAGE_SIZES: Final = tuple(512 << power for power in range(8))
_CHECKED_BYTES: Final = 24
_CONSTANT: Final = Struct(">3I")
_PAIR: Final = Struct(">2I")
_FRAME_HEADER: Final = Struct(">2I8s2I")
_WORD_BYTES: Final = 4
_MASK: Final = 0xFFFF_FFFF
_PAIRS_PER_MASK: Final = 16
"""A sum grows by 1.4 bits a pair, and Python adds numbers below 60 bits fast."""

_Order: TypeAlias = Literal["little", "big"]
_Checksum: TypeAlias = tuple[int, int]
_ORDERS: Final[tuple[_Order, _Order]] = ("little", "big")


class _Frame(NamedTuple):
    """The header of a frame; ``database_pages`` is 0 unless it ends a transaction."""

    page: int
    database_pages: int
    salts: bytes
    checksum: _Checksum


class _Log:
    """A log under the assumption of a page size and a byte order; frames count from 1."""

    def __init__(self, content: bytes, page_bytes: int, order: _Order) -> None:
        self.content = content
        self.order: _Order = order
        self.frame_bytes = FRAME_HEADER_BYTES + page_bytes
        self.frames = (len(content) - HEADER_BYTES) // self.frame_bytes
        self.constant = _CONSTANT.pack(_MAGIC + (order == "big"), _VERSION, page_bytes)

    def offset(self, number: int) -> int:
        """Return the offset of a frame in bytes; that of the header is 0."""
        return HEADER_BYTES + (number - 1) * self.frame_bytes if number else 0

    def frame(self, number: int) -> _Frame:
        page, pages, salts, *checksum = _FRAME_HEADER.unpack_from(self.content, self.offset(number))
        return _Frame(page, pages, salts, (checksum[0], checksum[1]))

    def stored(self, number: int) -> _Checksum:
        """Return the checksum in a frame; that of number 0 is in the header."""
        return self.frame(number).checksum if number else _stored(self.content)

    def checked(self, number: int) -> bytes:
        """Return the bytes of a frame, or of the header, that its checksum covers."""
        start = self.offset(number)
        if not number:
            return self.content[:_CHECKED_BYTES]
        page = self.content[start + FRAME_HEADER_BYTES : start + self.frame_bytes]
        return self.content[start : start + _PAIR.size] + page

    def computed(self, number: int, before: _Checksum) -> _Checksum:
        """Return the checksum that a frame should have behind ``before``."""
        return _checksum(self.checked(number), self.order, before)

    def continues(self, number: int, before: _Checksum, salts: bytes) -> bool:
        """Return whether there is such a frame, and SQLite accepts it behind ``before``."""
        if number > self.frames:
            return False
        frame = self.frame(number)
        return (
            frame.salts == salts
            and frame.page > 0
            and frame.checksum == self.computed(number, before)
        )

    def has_synced_commit(self, refused: int, computed: _Checksum, salts: bytes | None) -> bool:
        """Return whether a whole commit behind ``refused`` is followed by another transaction.

        ``computed`` is the checksum that the content of the frame ``refused`` gives it. Without
        ``salts`` a commit may have any, and the frame behind it the same.
        """
        for number in range(refused + 1, self.frames):
            frame = self.frame(number)
            if not frame.database_pages or frame.salts != (salts or frame.salts):
                continue
            before = [self.stored(number - 1), *([computed] if number == refused + 1 else [])]
            if self.continues(number + 1, frame.checksum, frame.salts) and any(
                self.continues(number, each, frame.salts) for each in before
            ):
                return True
        return False


def damaged_at(content: bytes) -> int | None:
    """Return the offset in bytes of the header or frame of a log that is certainly damaged.

    None: SQLite finds all commits that were durable, or a power cut can have left this log.
    """
    if len(content) <= HEADER_BYTES:
        return None
    log = _with_valid_header(content)
    if log is None:
        logs = (_Log(content, size, order) for size in _PAGE_SIZES for order in _ORDERS)
        return 0 if any(_has_damaged_header(each) for each in logs) else None
    salts, before = content[16:_CHECKED_BYTES], log.stored(0)
    number = 1
    while log.continues(number, before, salts):
        before = log.stored(number)
        number += 1
    # Nothing is proved by the last frame, because no other one follows it.
    if number < log.frames and _is_damaged(log, number, before, salts):
        return log.offset(number)
    return None


def is_ignored(content: bytes) -> bool:
    """Return whether SQLite ignores all frames of a log because of its header."""
    return len(content) > HEADER_BYTES and _with_valid_header(content) is None


def _with_valid_header(content: bytes) -> _Log | None:
    magic, _, page_bytes = _CONSTANT.unpack_from(content)
    if magic & ~1 != _MAGIC or page_bytes not in _PAGE_SIZES:
        return None
    log = _Log(content, page_bytes, _ORDERS[magic & 1])
    return log if log.computed(0, (0, 0)) == log.stored(0) else None


def _is_damaged(log: _Log, number: int, before: _Checksum, salts: bytes) -> bool:
    """Return whether a frame that SQLite refuses behind ``before`` was certainly durable."""
    frame, computed = log.frame(number), log.computed(number, before)
    if log.has_synced_commit(number, computed, salts):
        return True
    if frame.database_pages and log.continues(number + 1, computed, salts):
        return True  # Its own checksum or its salts are damaged.
    if frame.salts != salts or not log.continues(number + 1, frame.checksum, salts):
        return False
    # The next frame continues this one, but a torn commit may have hidden that this one is in the
    # middle of a transaction that was torn earlier. A single flipped bit excludes that, unless
    # the bit may be that of the mark of a commit.
    repaired = [
        any(content[_WORD_BYTES : _PAIR.size])
        for content in _with_one_bit_flipped(
            log.checked(number), log.order, computed, frame.checksum
        )
    ]
    return bool(repaired) and all(repaired)


def _has_damaged_header(log: _Log) -> bool:
    """Return whether a header that SQLite refuses was certainly durable in another form."""
    if not log.frames:
        return False
    salts = log.frame(1).salts
    if log.content[: _CONSTANT.size] != log.constant:
        # A torn header has this part of the header before it, which is the same.
        return log.has_synced_commit(0, log.computed(0, (0, 0)), None)
    return not _is_torn(log, salts) and log.has_synced_commit(0, log.computed(0, (0, 0)), salts)


def _is_torn(log: _Log, salts: bytes) -> bool:
    """Return whether the header begins as the one after that of ``salts``, and ends as that one.

    If the old checksum is still in the file, the old count follows from it: the first word of
    the checksum is a sum that has the count once, the second word has it twice.
    """
    header, stored = log.content[:_CHECKED_BYTES], log.stored(0)
    first, second = _checksum(log.constant + bytes(_WORD_BYTES) + salts, log.order, (0, 0))
    difference = (stored[0] - first) & _MASK
    has_old_checksum = stored[1] == (second + 2 * difference) & _MASK
    count = difference.to_bytes(_WORD_BYTES, log.order)
    next_salt = _successor(salts[:_WORD_BYTES])
    if header[16:20] == next_salt:
        return not has_old_checksum or header[12:16] != count
    old = log.constant + count + salts
    new = log.constant + _successor(count) + next_salt
    return has_old_checksum and any(
        header == new[:length] + old[length:] for length in range(_CONSTANT.size, len(new))
    )


def _successor(word: bytes) -> bytes:
    return ((int.from_bytes(word, "big") + 1) & _MASK).to_bytes(_WORD_BYTES, "big")


def _stored(content: bytes) -> _Checksum:
    first, second = _PAIR.unpack_from(content, _CHECKED_BYTES)
    return first, second


def _words(content: bytes, order: _Order) -> array[int]:
    words = array("I", content)
    assert words.itemsize == _WORD_BYTES
    if order != sys.byteorder:
        words.byteswap()
    return words


def _checksum(content: bytes, order: _Order, before: _Checksum) -> _Checksum:
    first, second = before
    words = iter(_words(content, order))
    pairs = zip(words, words, strict=True)
    while some := list(islice(pairs, _PAIRS_PER_MASK)):
        for even, odd in some:
            first += even + second
            second += odd + first
        first &= _MASK
        second &= _MASK
    return first, second


def _with_one_bit_flipped(
    content: bytes, order: _Order, has: _Checksum, wanted: _Checksum
) -> Iterator[bytes]:
    """Yield ``content`` with one bit flipped that changes its checksum as is wanted.

    The checksum is a linear function of the words, so the effect of a bit is known.
    """
    change = ((wanted[0] - has[0]) & _MASK, (wanted[1] - has[1]) & _MASK)
    words = _words(content, order)
    even, odd = (1, 1), (0, 1)
    for place in range(len(words) - 2, -1, -2):
        for index, (first, second) in ((place, even), (place + 1, odd)):
            for bit in range(words.itemsize * 8):
                step = -(1 << bit) if words[index] >> bit & 1 else 1 << bit
                if (step * first & _MASK, step * second & _MASK) == change:
                    flipped = (words[index] ^ 1 << bit).to_bytes(_WORD_BYTES, order)
                    start = index * _WORD_BYTES
                    yield content[:start] + flipped + content[start + _WORD_BYTES :]
        even, odd = _later(even), _later(odd)


def _later(effect: tuple[int, int]) -> tuple[int, int]:
    """Return the effect of a word on the checksum two words later."""
    first, second = effect
    return (first + second) & _MASK, (first + 2 * second) & _MASK
