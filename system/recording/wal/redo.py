"""The executions of a write-ahead log, computed from snapshots and entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from system.ports import Clock
from system.recording.executions.entry_type import EntryType
from system.recording.executions.execution import Execution
from system.recording.executions.fact import Fact, execution_of
from system.recording.executions.record_builder import RecordBuilder
from system.recording.wal.format import RawEntry

_KNOWN: Final = b'{"durable":'


class WalRedo:
    """``headless`` are ids whose start is missing."""

    def __init__(self, clock: Clock) -> None:
        self.headless: set[str] = set()
        self._clock = clock
        self._facts: dict[bytes, list[Fact]] = {}
        self._executions: dict[str, Execution] | None = None

    def resume(self, execution_id: str, builder: RecordBuilder) -> None:
        """Continue with the execution of a snapshot."""
        self._facts[execution_id.encode()] = builder.kept

    def apply(self, entries: Iterable[RawEntry], after: int = 0) -> None:
        """Apply the entries whose sequence number is above ``after``."""
        groups = self._facts
        for entry_type, payload in _joined(entries, after):
            is_known = payload.startswith(_KNOWN)
            encoded = b"{" + payload[payload.index(b",") + 1 :] if is_known else payload
            groups.setdefault(execution_of(encoded), []).append(Fact(entry_type, encoded))

    @property
    def executions(self) -> dict[str, Execution]:
        """The executions by id."""
        if self._executions is None:
            self._executions = {}
            for key, facts in self._facts.items():
                self._add(self._executions, key.decode("ascii", "replace"), facts)
        return self._executions

    def _add(self, executions: dict[str, Execution], execution_id: str, facts: list[Fact]) -> None:
        known = [fact for fact in facts if fact.parsed() is not None]
        if known and known[0].entry_type == EntryType.START:
            executions[execution_id] = Execution.of_facts(self._clock, known)
        elif known:
            self.headless.add(execution_id)

    def corrupted(self) -> list[str]:
        """Return the ids of executions that lack an event or their start, sorted."""
        damaged = {key for key, each in self.executions.items() if each.is_corrupted}
        return sorted(self.headless | damaged)


def _joined(entries: Iterable[RawEntry], after: int) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the payload, pieces joined, of each fact after the entry ``after``.

    Payloads whose first piece is missing are omitted.
    """
    parts: list[RawEntry] = []
    for entry in entries:
        if parts and entry.seq != parts[-1].seq + 1:
            parts.clear()
        if entry.entry_type == EntryType.PART:
            parts.append(entry)
        elif parts:
            if entry.seq > after:
                pieces = [*parts, entry]
                yield entry.entry_type, b"".join([piece.payload for piece in pieces])
            parts.clear()
        elif entry.seq > after:
            yield entry.entry_type, entry.payload
