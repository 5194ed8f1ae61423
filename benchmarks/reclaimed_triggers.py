"""The boot of a root whose agents all had claimed a trigger, beside one without these triggers."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.durable_directory import durable_directory
from benchmarks.durable_store import FAR, PAYLOAD, DurableStore
from benchmarks.instant_provider import InstantProvider
from benchmarks.row import Row
from system.durable.state import STATE, Transaction
from system.durable.trigger import TriggerSpec
from system.host import real_host
from system.runtime import Options, Runtime

_AGENTS: Final = 1_000
_ROUNDS: Final = 5
_OPTIONS: Final = Options(slots=_AGENTS, recording=None)


def rows() -> Iterator[Row]:
    """Yield the row."""
    with durable_directory() as directory:
        root = f"{directory}/root"
        asyncio.run(_make(root))
        copies = [Path(directory, name) for name in ("without", "claimed")]
        shutil.copy(Path(root, STATE), copies[0])
        _claim(root)
        shutil.copy(Path(root, STATE), copies[1])
        times = [[_booted(root, copy) for copy in copies] for _ in range(_ROUNDS)]
    without, claimed = (1e3 * median(time[index] for time in times) for index in (0, 1))
    yield Row(
        "boot with 1,000 CLAIMED rows / boot without", claimed, without, "ms", "<=", 1.5,
        f"{_AGENTS:,} agents, each of which had claimed one",
    )  # fmt: skip


async def _make(root: str) -> None:
    runtime = await Runtime.open(real_host(root), {"scripted": InstantProvider()}, _OPTIONS)
    for number in range(_AGENTS):
        await runtime.create_agent(f"agent {number}")
    session_id = runtime.view().agents[0].session_id
    await runtime.emit(TriggerSpec("IMMEDIATE", PAYLOAD, session_id=session_id, fire_at=FAR))
    await runtime.close()


def _claim(root: str) -> None:
    """Claim a trigger for each agent, as turns do that a crash interrupts."""
    store = DurableStore(root)
    store.fill(_AGENTS, sorted(path.name for path in Path(root, "agents").iterdir()), 1.0)

    def claim(transaction: Transaction) -> None:
        for session_id in store.stores.queue.take_due_sessions(FAR - 1):
            trigger_id = store.stores.queue.next_of(session_id, FAR - 1)
            assert trigger_id is not None
            assert store.stores.triggers.claim(transaction, trigger_id) is not None

    store.do(claim)
    store.state.close()


def _booted(root: str, state: Path) -> float:
    """Return the seconds that a recovery took with this database."""
    for name in (f"{STATE}-wal", STATE):
        Path(root, name).unlink(missing_ok=True)
    shutil.copy(state, Path(root, STATE))
    return asyncio.run(_boot(root))


async def _boot(root: str) -> float:
    start = perf_counter()
    runtime = await Runtime.recover(real_host(root), {"scripted": InstantProvider()}, _OPTIONS)
    taken = perf_counter() - start
    await runtime.close()
    return taken
