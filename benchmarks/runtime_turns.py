"""Durable turns of many agents at once, and the time until a message wakes a waiting agent.

The real runtime, on a real directory, with a provider that answers at once. A turn is a
message that the operator sent, durably, and an answer that was committed. Executions are not
recorded; the cost of recording has rows of its own (``recording``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks import dbos_peer
from benchmarks.durable_directory import durable_directory
from benchmarks.instant_provider import InstantProvider
from benchmarks.row import Row
from benchmarks.talking_agents import PAYLOAD, take_turns
from system.host import real_host
from system.runtime import Options, Runtime

_AGENTS: Final = 64
_TURNS: Final = 10
"""The turns of each agent in one round."""
_ROUNDS: Final = 5
_STARTS: Final = 200
_WAKE_UPS: Final = 200
_WAKE_UP_GOAL_MS: Final = 5.0
_NOT_INSTALLED: Final = "dbos is not installed"


def rows() -> Iterator[Row]:
    """Yield the row of turns, if there is a peer, and the row of the wake-up."""
    with durable_directory() as directory, ExitStack() as stack:
        peer = None
        if dbos_peer.installed():
            peer = stack.enter_context(dbos_peer.launched(directory))
        turns, starts, wake_ups = asyncio.run(_measured(directory, peer))
        received = median(peer.wake_ups()) * 1e3 if peer else None
    if starts:
        yield Row(
            "durable turns / s, 64 in flight / DBOS starts", turns, starts, "/s", ">=", 5.0,
            "a turn: a message made durable, and an answer committed; DBOS: start_workflow",
        )  # fmt: skip
    seen = _NOT_INSTALLED if received is None else f"DBOS recv: {received:,.0f} ms"
    yield Row(
        "wake-up of a waiting agent / 5 ms", wake_ups * 1e3, _WAKE_UP_GOAL_MS, "ms", "<=", 1.0,
        f"from the call of send, its barrier included, to the call of the provider, median; {seen}",
    )  # fmt: skip


async def _measured(
    directory: str, peer: dbos_peer.DbosPeer | None
) -> tuple[float, float | None, float]:
    """Return turns and starts in a second, in turn, and the seconds of a wake-up."""
    provider = InstantProvider()
    options = Options(slots=_AGENTS, recording=None)
    runtime = await Runtime.open(real_host(f"{directory}/root"), {"scripted": provider}, options)
    agents = [await runtime.create_agent(f"agent {number}") for number in range(_AGENTS)]
    turns, starts = [], []
    await take_turns(runtime, provider, agents, _TURNS)
    for _ in range(_ROUNDS):
        start = perf_counter()
        await take_turns(runtime, provider, agents, _TURNS)
        turns.append(_AGENTS * _TURNS / (perf_counter() - start))
        if peer is not None:
            starts.append(_STARTS / peer.starts(_STARTS, PAYLOAD))
    wake_ups = [await _wake_up(runtime, provider, agents[0]) for _ in range(_WAKE_UPS)]
    await runtime.close()
    return median(turns), median(starts) if starts else None, median(wake_ups)


async def _wake_up(runtime: Runtime, provider: InstantProvider, agent_id: str) -> float:
    """Return the seconds from the call of ``send`` to the call of the provider.

    The barrier of the message lies between. ``send`` may return after the provider was called.
    """
    await runtime.idle()
    called: list[float] = []
    provider.called = lambda _: called.append(perf_counter())
    start = perf_counter()
    await runtime.send(agent_id, {**PAYLOAD})
    await runtime.idle()
    provider.called = None
    return called[0] - start
