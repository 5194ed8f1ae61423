"""The interfaces of record stores and of caches of replays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from system.recording.records.record import ExecutionRecord

T = TypeVar("T")


class RecordReader(Protocol):
    """The part of a store that reads."""

    def load(self, execution_id: str) -> ExecutionRecord:
        """Return a record whose structure and hashes hold.

        Raises ``RecordNotFoundError``, ``RecordCorruptedError``, ``ForeignRecordFile``,
        ``NewerFormat`` or ``OSError``.
        """
        ...

    def list_all(self) -> Iterator[str]:
        """Yield the ids of all records, sorted."""
        ...

    def is_running(self, execution_id: str, /) -> bool:
        """Return whether the execution is open in this process."""
        ...


class ExecutionStore(RecordReader, Protocol):
    """Keeps records by execution id."""

    def save(self, record: ExecutionRecord) -> str:
        """Keep a record durably, whole or not at all; return its path.

        The invalidation of a stored record of the execution is kept. Raises ``RecorderError`` while
        the execution is running, ``UnsoundRecord`` for a record that ``load`` would refuse, and
        ``NewerFormat`` if the stored record is of a later version.
        """
        ...

    def find_by_hash(self, envelope_hash: str) -> list[str]:
        """Return the ids of all records with this envelope hash, sorted; raises ``OSError``.

        ``load`` may report damage of one of them.
        """
        ...

    def hash_of(self, execution_id: str) -> str | None:
        """Return the record hash of a record that was read or written here, without reading.

        None if it is not known.
        """
        ...

    def invalidate(self, execution_id: str, reason: str, by: str) -> ExecutionRecord:
        """Make a record not replayable for ever, durably; return it as it is now.

        Raises ``RecorderError`` while the execution is running, and as ``load``.
        """
        ...


class Cache(Protocol, Generic[T]):
    """Keeps values for a time."""

    def get(self, key: object) -> T | None:
        """Return the value, or None if there is none or its time is over."""
        ...

    def set(self, key: object, value: T, ttl_s: float) -> None:
        """Keep a value for ``ttl_s`` seconds."""
        ...

    def delete(self, key: object) -> None:
        """Remove a value, if there is one."""
        ...
