"""Replays that are kept for a while."""

from __future__ import annotations

from itertools import takewhile
from typing import Final, Generic, TypeVar

from system.ports import Clock
from system.recording.records.record import ExecutionRecord
from system.recording.replays.replay import ReplayEngine
from system.recording.replays.replay_result import ReplayResult
from system.recording.stores.store import Cache, ExecutionStore

T = TypeVar("T")

TTL_S: Final = 3600.0

_SECOND_NS: Final = 1_000_000_000


class MemoryCache(Generic[T]):
    """A ``Cache`` in memory; values whose time is over go when a later one is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[object, tuple[int, T]] = {}

    def get(self, key: object) -> T | None:
        found = self._entries.get(key)
        if found is None:
            return None
        until_ns, value = found
        if self._clock.monotonic_ns() < until_ns:
            return value
        del self._entries[key]
        return None

    def set(self, key: object, value: T, ttl_s: float) -> None:
        now_ns = self._clock.monotonic_ns()
        for old in [*takewhile(lambda each: self._entries[each][0] <= now_ns, self._entries)]:
            del self._entries[old]
        # The oldest value stays the first one.
        self._entries.pop(key, None)
        self._entries[key] = (now_ns + int(ttl_s * _SECOND_NS), value)

    def delete(self, key: object) -> None:
        self._entries.pop(key, None)


class CachingReplayEngine:
    """Replays from a cache; a hit reads nothing.

    The key has the hash of the record, which the store knows without reading, so an
    invalidated record is never served from the cache.
    """

    def __init__(self, store: ExecutionStore, cache: Cache[ReplayResult]) -> None:
        self._store = store
        self._cache = cache

    def replay(self, execution_id: str) -> ReplayResult:
        """Return the recorded response; raises as ``replay`` without ``force``."""
        known = self._store.hash_of(execution_id)
        if known is not None:
            found = self._cache.get((execution_id, known))
            if found is not None:
                return found
        result = ReplayEngine(self._store.load(execution_id)).replay()
        loaded = self._store.hash_of(execution_id)
        if loaded is not None:
            self._cache.set((execution_id, loaded), result, TTL_S)
        return result

    def invalidate(self, execution_id: str, reason: str, by: str) -> ExecutionRecord:
        """Invalidate the record in the store, and remove its replay from the cache."""
        known = self._store.hash_of(execution_id)
        if known is not None:
            self._cache.delete((execution_id, known))
        return self._store.invalidate(execution_id, reason, by)
