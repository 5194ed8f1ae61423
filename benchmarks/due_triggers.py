"""The time from a due trigger to the call of the provider, and the rate of triggers beside DBOS.

The real runtime on a real directory, with a provider that answers at once. Executions are not
recorded; the cost of recording has rows of its own (``recording``). For the time there are 100,000
triggers of another time (``POWERCUT_ROWS``).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from statistics import median, quantiles
from time import perf_counter
from typing import Final

from benchmarks import dbos_peer
from benchmarks.durable_directory import durable_directory
from benchmarks.durable_store import FAR, PAYLOAD, DurableStore
from benchmarks.instant_provider import InstantProvider
from benchmarks.row import Row
from benchmarks.talking_agents import PAYLOAD as DBOS_PAYLOAD
from system.durable.trigger import TriggerSpec
from system.host import real_host
from system.runtime import Options, Runtime

_ROWS: Final = int(os.environ.get("POWERCUT_ROWS", "100000"))
_DUE: Final = 1_000
_AHEAD_S: Final = 0.02
"""The seconds between the emission of a trigger and its time."""
_AGENTS: Final = 512
"""Each has one of the triggers that are enqueued at once: the workflows of DBOS are independent."""
_ROUNDS: Final = 7
"""Odd, for the median; the disk and other programs change the rate of a round by half."""


def rows() -> Iterator[Row]:
    """Yield the rows of due triggers, and that of enqueued ones if there is a peer."""
    with durable_directory() as directory:
        late = asyncio.run(_latenesses(f"{directory}/due"))
        note = f"from its time to the call of the provider, {_ROWS:,} future rows, {_DUE:,} of them"
        middle, last = median(late), quantiles(late, n=100)[-1]
        yield Row("due to provider call, median / 5 ms", 1e3 * middle, 5.0, "ms", "<=", 1.0, note)
        yield Row("due to provider call, p99 / 20 ms", 1e3 * last, 20.0, "ms", "<=", 1.0, note)
        if dbos_peer.installed():
            with dbos_peer.launched(directory) as peer:
                starts, peers = asyncio.run(_rates(f"{directory}/enqueue", peer))
            yield Row(
                "enqueue to start / DBOS", median(starts), median(peers), "/s", ">=", 5.0,
                f"{_AGENTS} at once, of as many agents: emit to the call of the provider;"
                " Queue.enqueue to the workflow; nothing else in either database",
            )  # fmt: skip


async def _latenesses(root: str) -> list[float]:
    """Return the lateness of triggers, one after the other, beside many of another time."""
    provider = InstantProvider()
    runtime, sessions = await _with_agents(root, provider)
    await runtime.emit(TriggerSpec("IMMEDIATE", PAYLOAD, session_id=sessions[0], fire_at=FAR))
    await runtime.close()
    store = DurableStore(root)
    store.fill(_ROWS, sessions, FAR)
    store.state.close()
    runtime = await _opened(root, provider)
    late = [await _lateness(runtime, provider, sessions[0]) for _ in range(_DUE)]
    await runtime.close()
    return late


async def _rates(root: str, peer: dbos_peer.DbosPeer) -> tuple[list[float], list[float]]:
    """Return the starts in a second of both, in turn."""
    provider = InstantProvider()
    runtime, sessions = await _with_agents(root, provider)
    starts, peers = [], []
    # All conversations are open from here on.
    await _enqueued(runtime, provider, sessions)
    for _ in range(_ROUNDS):
        starts.append(_AGENTS / await _enqueued(runtime, provider, sessions))
        peers.append(_AGENTS / await asyncio.to_thread(peer.enqueued, _AGENTS, DBOS_PAYLOAD))
    await runtime.close()
    return starts, peers


async def _with_agents(root: str, provider: InstantProvider) -> tuple[Runtime, list[str]]:
    """Return a runtime, and the sessions of its agents."""
    runtime = await _opened(root, provider)
    for number in range(_AGENTS):
        await runtime.create_agent(f"agent {number}")
    return runtime, [agent.session_id for agent in runtime.view().agents]


async def _opened(root: str, provider: InstantProvider) -> Runtime:
    options = Options(slots=_AGENTS, recording=None)
    return await Runtime.open(real_host(root), {"scripted": provider}, options)


async def _lateness(runtime: Runtime, provider: InstantProvider, session_id: str) -> float:
    """Return the seconds from a trigger's time to the call of the provider."""
    called = asyncio.get_running_loop().create_future()
    provider.called = lambda _: called.set_result(time.time())
    due_at = time.time() + _AHEAD_S
    await runtime.emit(TriggerSpec("IMMEDIATE", PAYLOAD, session_id=session_id, fire_at=due_at))
    late: float = await called - due_at
    provider.called = None
    await runtime.idle()
    return late


async def _enqueued(runtime: Runtime, provider: InstantProvider, sessions: list[str]) -> float:
    """Return the seconds from the first emission to the last call of the provider."""
    calls: list[float] = []
    is_done = asyncio.Event()

    def called(_session_id: str) -> None:
        calls.append(perf_counter())
        if len(calls) == _AGENTS:
            is_done.set()

    provider.called = called
    start = perf_counter()
    await asyncio.gather(
        *(
            runtime.emit(TriggerSpec("IMMEDIATE", PAYLOAD, session_id=session_id))
            for session_id in sessions
        )
    )
    await is_done.wait()
    provider.called = None
    await runtime.idle()
    return calls[-1] - start
