"""Reading a long execution of a pack in pieces, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import log_records_in
from system.recording.executions.record_builder import RecordBuilder
from system.recording.records.errors import RecordCorruptedError, problem_of
from system.recording.records.event import ExecutionEvent

PIECE_BYTES: Final = 1 << 20

_FINAL: Final = b"%02d " % EntryType.FINAL_RESPONSE
_HEAD: Final = re.compile(rb'\{(?:"m":"(?:[^"\\]|\\.)*",)?"n":\d+,"p":')
_TAIL: Final = re.compile(rb',"ts":"[^"]*","x":"exec-[0-9a-f]{16}"\}')
_TAIL_BYTES: Final = len(',"ts":"2026-01-01T00:00:00.000000Z","x":"exec-0123456789abcdef"}')


class PackStream:
    """An execution of which ``pieces`` yields the verified lines; ``name`` is for errors.

    Raises ``RecordCorruptedError``, and as ``pieces``.
    """

    def __init__(self, pieces: Callable[[], Iterator[bytes]], name: str) -> None:
        self._pieces = pieces
        self._name = name

    def events(self) -> Iterator[ExecutionEvent]:
        """Yield the events; one of them is in memory at a time."""
        builder = RecordBuilder()
        try:
            for log_record in log_records_in(self._pieces()):
                builder.take(log_record)
                yield from builder.events
                builder.events.clear()
                builder.kept.clear()
        except ValueError as bad:
            raise RecordCorruptedError(self._name, [problem_of(bad)]) from bad

    def response(self) -> Iterator[bytes]:
        """Yield the final response, canonical JSON, in pieces of 1 MiB at most.

        Nothing is yielded for an execution without one.
        """
        head, waiting, is_other = b"", b"", False
        for starts_line, part in _parts(self._pieces()):
            piece = part
            if starts_line:
                if waiting:
                    break
                head, is_other = b"", False
            if not waiting:
                if is_other:
                    continue
                head += piece
                is_other = not _FINAL.startswith(head[: len(_FINAL)])
                found = None if is_other else _HEAD.match(head, len(_FINAL))
                if found is None:
                    continue
                piece = head[found.end() :]
            waiting += piece
            for start in range(0, len(waiting) - _TAIL_BYTES, PIECE_BYTES):
                yield waiting[start : min(start + PIECE_BYTES, len(waiting) - _TAIL_BYTES)]
            waiting = waiting[-_TAIL_BYTES:]
        if waiting and _TAIL.fullmatch(waiting) is None:
            raise RecordCorruptedError(self._name, ["its final response has no end"])


def _parts(pieces: Iterator[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Yield pieces without line ends, and whether each starts a line."""
    starts_line = True
    for piece in pieces:
        first, *others = piece.split(b"\n")
        if first:
            yield starts_line, first
            starts_line = False
        for line in others:
            starts_line = True
            if line:
                yield starts_line, line
                starts_line = False
