"""Recovery of a large root, beside reading and parsing the same bytes; without recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.durable_directory import durable_directory
from benchmarks.instant_provider import InstantProvider
from benchmarks.row import Row, seconds_of
from system.host import real_host
from system.recovery.resume import Resume
from system.runtime import Options, Runtime

_SESSIONS: Final = 1_000
_LINES: Final = 100_000
_AT_ONCE: Final = 16
_ROUNDS: Final = 7
_PAYLOAD: Final = {"text": "x" * 200}


def rows() -> Iterator[Row]:
    """Yield the row."""
    with durable_directory() as directory:
        root = f"{directory}/root"
        asyncio.run(_make(root))
        asyncio.run(_recovered(root))
        bare, ours = [], []
        for _ in range(_ROUNDS):
            bare.append(seconds_of(lambda: _parsed(root)))
            ours.append(asyncio.run(_recovered(root)))
        lines = _parsed(root)
    yield Row(
        "recovery of 1,000 sessions / read + json.loads", median(ours), median(bare), "s", "<=",
        3.0, f"{lines:,} lines of real turns, framed, from the page cache",
    )  # fmt: skip


async def _make(root: str) -> None:
    """Let agents talk until their logs have ``_LINES`` lines together."""
    options = Options(slots=_SESSIONS, recording=None)
    runtime = await Runtime.open(real_host(root), {"scripted": InstantProvider()}, options)
    names = [f"agent {number}" for number in range(_SESSIONS)]
    agents = [await runtime.create_agent(name, "Answer briefly.") for name in names]
    while _parsed(root) < _LINES:
        for first in range(0, _SESSIONS, _AT_ONCE):
            some = agents[first : first + _AT_ONCE]
            await asyncio.gather(*[runtime.send(agent_id, {**_PAYLOAD}) for agent_id in some])
        await runtime.idle()
    await runtime.close()


async def _recovered(root: str) -> float:
    """Return the seconds that a recovery took."""
    options = Options(resume=Resume.NONE, recording=None)
    start = perf_counter()
    runtime = await Runtime.recover(real_host(root), {"scripted": InstantProvider()}, options)
    taken = perf_counter() - start
    await runtime.close()
    return taken


def _parsed(root: str) -> int:
    """Read every log and parse every line; return the number of lines."""
    lines = 0
    for log in sorted(Path(root, "agents").glob("*/events.jsonl")):
        values = [json.loads(line) for line in log.read_bytes().splitlines()]
        lines += len(values)
    return lines
