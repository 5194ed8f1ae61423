"""A durable step: one committed line, beside a bare append and beside the peers' steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks import dbos_peer, langgraph_peer
from benchmarks.durable_directory import durable_directory
from benchmarks.row import Row
from system.host import real_host
from system.ports import JsonObject
from system.storage.event_log import EventLog
from system.storage.line import Line, encode_line, timestamp

_STEPS: Final = 100
_ROUNDS: Final = 11
_MICROSECONDS: Final = 1e6
_LOG: Final = "events.jsonl"
_PAYLOAD: Final = {"turn_id": "a" * 32, "response": "x" * 200}
_DATA: Final[JsonObject] = {**_PAYLOAD}

Steps = Callable[[], float]
"""Takes ``_STEPS`` steps and returns the seconds that they took."""


def rows() -> Iterator[Row]:
    """Yield the row beside bare calls and, if there is a peer, the one beside the best."""
    with durable_directory() as directory, ExitStack() as stack:
        runners = {"ours": _ours(directory), "bare": _bare(directory)}
        missing = []
        if dbos_peer.installed():
            dbos = stack.enter_context(dbos_peer.launched(directory))
            runners["DBOS"] = lambda: dbos.steps(_STEPS, _PAYLOAD)
        else:
            missing.append("dbos")
        if langgraph_peer.installed():
            saver = langgraph_peer.LangGraphPeer(directory)
            stack.callback(saver.close)
            runners["LangGraph"] = lambda: saver.steps(_STEPS, _PAYLOAD)
        else:
            missing.append("langgraph-checkpoint-sqlite")
        taken = _in_turn(runners)
    ours, bare = taken.pop("ours"), taken.pop("bare")
    yield Row(
        "durable step / append + fdatasync", ours, bare, "µs", "<=", 2.5,
        "one line of an event log, framed, sealed and committed",
    )  # fmt: skip
    if taken:
        best = min(taken, key=taken.__getitem__)
        figures = [f"{peer} {time:,.0f} µs" for peer, time in taken.items()]
        figures += [f"{name} is not installed" for name in missing]
        yield Row(
            "durable step / best peer", ours, taken[best], "µs", "<=", 0.5,
            f"per step, SQLite in WAL mode, synchronous FULL: {', '.join(figures)}",
        )  # fmt: skip


def _in_turn(runners: dict[str, Steps]) -> dict[str, float]:
    """Run each once a round; return the median time of one step in microseconds."""
    for run in runners.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(_ROUNDS):
        for name, run in runners.items():
            times[name].append(run())
    return {name: median(times[name]) * _MICROSECONDS / _STEPS for name in runners}


def _ours(directory: str) -> Steps:
    log = EventLog.open(real_host(directory), _LOG, "5" * 32)

    def run() -> float:
        start = perf_counter()
        for _ in range(_STEPS):
            log.append("turn.complete", _DATA)
        return perf_counter() - start

    return run


def _bare(directory: str) -> Steps:
    """Append as many bytes as a line has."""
    line = encode_line(Line(1, timestamp(0), "5" * 32, "turn.complete", _DATA), _LOG)
    descriptor = os.open(f"{directory}/bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def run() -> float:
        start = perf_counter()
        for _ in range(_STEPS):
            os.write(descriptor, line)
            os.fdatasync(descriptor)
        return perf_counter() - start

    return run
