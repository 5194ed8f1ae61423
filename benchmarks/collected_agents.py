"""The boot of a root whose agents have nearly all ended, beside that of its living agents alone.

``POWERCUT_ENDED`` is the number of collected agents, 100,000 if it is not set. The root also
has as many triggers that are DONE, and their keys.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.durable_directory import durable_directory
from benchmarks.durable_store import PAYLOAD, DurableStore
from benchmarks.instant_provider import InstantProvider
from benchmarks.row import Row
from system.archive import ARCHIVE, archive_path
from system.collector import CollectionOptions
from system.durable.ended import Ended, insert_ended
from system.durable.open_state import open_state
from system.durable.state import Transaction
from system.durable.trigger import TriggerSpec
from system.host import real_host
from system.root import Root
from system.runtime import Options, Runtime

_LIVING: Final = 20
_ENDED: Final = int(os.environ.get("POWERCUT_ENDED", "100000"))
_ROUNDS: Final = 15
_OPTIONS: Final = Options(recording=None, collection=CollectionOptions())


def rows() -> Iterator[Row]:
    """Yield the row."""
    with durable_directory() as directory:
        roots = [f"{directory}/living", f"{directory}/ended"]
        for root, ended in zip(roots, (1, _ENDED), strict=True):
            asyncio.run(_make(root))
            _add_ended(root, ended)
            asyncio.run(_boot(root))
        times = [[asyncio.run(_boot(root)) for root in roots] for _ in range(_ROUNDS)]
    living, ended_too = (median(time[index] for time in times) for index in (0, 1))
    yield Row(
        f"boot with {_ENDED:,} ended / boot of the living", 1e3 * ended_too, 1e3 * living, "ms",
        "<=", 1.2,
        f"{_LIVING} living agents; rows and archives of the ended ones, and as many DONE triggers",
    )  # fmt: skip


async def _make(root: str) -> None:
    providers = {"scripted": InstantProvider()}
    runtime = await Runtime.open(real_host(root), providers, _OPTIONS)
    for number in range(_LIVING):
        agent_id = await runtime.create_agent(f"agent {number}")
        await runtime.send(agent_id, "hello")
    await runtime.idle()
    await runtime.close()


def _add_ended(root: str, count: int) -> None:
    """Write the rows and archives of ``count`` collected agents."""
    host = real_host(root)
    opened = Root.open(host.files, host.ids)
    state = open_state(host, None)
    opened.adopt(host.files, host.ids, state.root_id)
    made = [
        Ended(
            f"{number:032x}", f"{number:032d}", f"ended {number}", None, f"request {number}",
            "operator", float(number), archive_path(f"{number:032d}"),
        )
        for number in range(count)
    ]  # fmt: skip
    state.transact(lambda transaction: insert_ended(transaction, made))
    state.close()
    opened.close()
    _add_settled(root, count)
    Path(root, ARCHIVE).mkdir()
    for row in made:
        Path(root, str(row.archive)).write_bytes(b"{}\n")


def _add_settled(root: str, count: int) -> None:
    """Add triggers that are DONE since now, with keys that outlive them."""
    store = DurableStore(root)

    def settle(transaction: Transaction) -> None:
        for number in range(count):
            spec = TriggerSpec("SKILL_WORKFLOW", PAYLOAD, None, "s", 1.0, f"skill:w:{number}")
            emitted = store.stores.emitter.emit(transaction, spec)
            store.stores.triggers.settle(transaction, emitted.trigger_id)

    store.do(settle)
    store.state.close()


async def _boot(root: str) -> float:
    """Return the seconds that a recovery took."""
    start = perf_counter()
    providers = {"scripted": InstantProvider()}
    runtime = await Runtime.recover(real_host(root), providers, _OPTIONS)
    taken = perf_counter() - start
    await runtime.close()
    return taken
