"""Triggers in the store: an emission and a claim, beside bare commits of SQLite.

``POWERCUT_ROWS`` is the number of triggers in each population, 100,000 if it is not set. All times
are those of the store, without the thread of ``Runtime.emit``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Final, NamedTuple

from benchmarks.durable_directory import durable_directory
from benchmarks.durable_store import FAR, PAYLOAD, BareTable, DurableStore
from benchmarks.row import Row, seconds_of
from system.durable.seconds import reached_at
from system.durable.state import Transaction
from system.durable.trigger import TRIGGERS, Claim, TriggerSpec

_ROWS: Final = int(os.environ.get("POWERCUT_ROWS", "100000"))
_EMISSIONS: Final = 2000
_CLAIMS: Final = 400
_SESSIONS: Final = [f"session {number}" for number in range(1000)]
_OWN: Final = "own session"
"""The session whose triggers are measured."""


class _Claimed(NamedTuple):
    """The seconds of a claim, with its commit and without."""

    whole: float
    inner: float


def rows() -> Iterator[Row]:
    """Yield the rows."""
    with durable_directory() as directory:
        bare = BareTable(f"{directory}/bare.db", _ROWS)
        yield _emissions(f"{directory}/emit", bare)
        for name, fill in _POPULATIONS.items():
            yield from _claims(name, _filled(f"{directory}/{name}", fill), bare)
        bare.close()


def _filled(directory: str, fill: Callable[[DurableStore], None]) -> DurableStore:
    store = DurableStore(directory)
    fill(store)
    # The first reads of the queue move all rows that are due.
    store.stores.queue.take_due_sessions(_now(store))
    return store


# -- the populations ---------------------------------------------------------------------


def _all_due(store: DurableStore) -> None:
    store.fill(_ROWS, [*_SESSIONS[:99], _OWN], 1.0)


def _in_the_future(store: DurableStore) -> None:
    store.fill(_ROWS, [*_SESSIONS[:99], _OWN], FAR)


def _of_gated_sessions(store: DurableStore) -> None:
    store.fill(_ROWS, _SESSIONS, 1.0)


def _in_back_off(store: DurableStore) -> None:
    store.fill(_ROWS, [*_SESSIONS[:99], _OWN], 1.0)

    def delay(transaction: Transaction) -> None:
        for number, trigger in TRIGGERS.select(transaction, "1"):
            assert not isinstance(trigger, Exception)
            waiting = trigger._replace(not_before=FAR, due_at=FAR, attempts=1)
            TRIGGERS.update(transaction, waiting)
            store.stores.queue.add(waiting, number)

    store.do(delay)


_POPULATIONS: Final[dict[str, Callable[[DurableStore], None]]] = {
    "all due": _all_due,
    "all but one in back-off": _in_back_off,
    "in the future": _in_the_future,
    "of gated sessions": _of_gated_sessions,
}


# -- the rows ----------------------------------------------------------------------------


def _emissions(directory: str, bare: BareTable) -> Row:
    store = _filled(directory, _in_the_future)
    numbers = iter(range(1_000_000))
    times = [(seconds_of(lambda: _emit(store, next(numbers))), seconds_of(bare.insert))
             for _ in range(_EMISSIONS)]  # fmt: skip
    ours, beside = (1e6 * median(time[index] for time in times) for index in (0, 1))
    store.state.close()
    return Row(
        "emit / bare insert commit", ours, beside, "µs", "<=", 1.5,
        f"with a dedup key; {_ROWS:,} rows in both tables",
    )  # fmt: skip


def _emit(store: DurableStore, number: int) -> None:
    spec = TriggerSpec("IMMEDIATE", PAYLOAD, None, _OWN, 1.0, f"immediate:{number}")
    store.do(lambda transaction: store.stores.emitter.emit(transaction, spec))


def _claims(name: str, store: DurableStore, bare: BareTable) -> Iterator[Row]:
    claims, updates = [], []
    for number in range(_CLAIMS):
        _emit(store, number)
        claims.append(_claim(store))
        updates.append(seconds_of(bare.update))
    store.state.close()
    whole = 1e6 * median(claim.whole for claim in claims)
    beside = 1e6 * median(updates)
    note = f"{_ROWS:,} rows {name}, and the search for the trigger"
    yield Row(f"claim / bare update commit, {name}", whole, beside, "µs", "<=", 2.0, note)
    inner = 1e3 * median(claim.inner for claim in claims)
    yield Row(f"claim without the commit / 0.2 ms, {name}", inner, 0.2, "ms", "<=", 1.0, note)


def _claim(store: DurableStore) -> _Claimed:
    """Find the due trigger of the session, and claim it."""
    queue, inner = store.stores.queue, list[float]()
    start = perf_counter()
    queue.take_due_sessions(_now(store))
    trigger_id = queue.next_of(_OWN, _now(store))
    assert trigger_id is not None
    found = perf_counter() - start

    def work(transaction: Transaction) -> Claim | None:
        begun = perf_counter()
        claim = store.stores.triggers.claim(transaction, trigger_id)
        inner.append(perf_counter() - begun)
        return claim

    assert store.do(work) is not None
    return _Claimed(perf_counter() - start, found + inner[0])


def _now(store: DurableStore) -> float:
    return reached_at(store.clock.now_ns())
