"""DBOS Transact on SQLite in WAL mode: a durable step, the start of a workflow, a message.

Call ``installed()`` first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_TOPIC: Final = "wake"
_QUEUE: Final = "bench"
_POLL_SECONDS: Final = 0.05
"""In place of a second, so that the measured rate does not depend on the moment of a poll."""
_PATIENCE_SECONDS: Final = 30
# Longer than the poll interval of a receiver, so that the message arrives within one.
_PAUSES_SECONDS: Final = (0.31, 0.47, 0.61, 0.83, 1.03)


def installed() -> bool:
    """Whether the peer can be measured here."""
    return find_spec("dbos") is not None


class DbosPeer:
    """One application; ``launched`` makes it. All times are in seconds."""

    def __init__(self, dbos: Any) -> None:
        self._dbos = dbos

        def same(payload: dict[str, str]) -> dict[str, str]:
            return payload

        step = dbos.step(name="step")(same)

        def steps(count: int, payload: dict[str, str]) -> float:
            start = time.perf_counter()
            for _ in range(count):
                step(payload)
            return time.perf_counter() - start

        def started(payload: dict[str, str]) -> float:
            return time.perf_counter()

        def receive() -> float:
            dbos.recv(_TOPIC, timeout_seconds=_PATIENCE_SECONDS)
            return time.perf_counter()

        self._steps = dbos.workflow(name="steps")(steps)
        self._turn = dbos.workflow(name="turn")(same)
        self._started = dbos.workflow(name="started")(started)
        self._receiver = dbos.workflow(name="receive")(receive)

    def steps(self, count: int, payload: dict[str, str]) -> float:
        """Return the seconds that ``count`` steps of one workflow took."""
        taken: float = self._steps(count, payload)
        return taken

    def starts(self, count: int, payload: dict[str, str]) -> float:
        """Return the seconds that starting ``count`` workflows took."""
        start = time.perf_counter()
        workflows = [self._dbos.start_workflow(self._turn, payload) for _ in range(count)]
        taken = time.perf_counter() - start
        for workflow in workflows:
            workflow.get_result()
        return taken

    def enqueued(self, count: int, payload: dict[str, str]) -> float:
        """Return the seconds from the first of ``count`` calls of ``enqueue`` to the last start."""
        queue = self._dbos.register_queue(_QUEUE, polling_interval_sec=_POLL_SECONDS)
        begun = time.perf_counter()
        workflows = [queue.enqueue(self._started, payload) for _ in range(count)]
        last: float = max(workflow.get_result() for workflow in workflows)
        return last - begun

    def wake_ups(self) -> list[float]:
        """Return the times from the end of ``send`` to the end of ``recv``."""
        taken = []
        for pause in _PAUSES_SECONDS:
            workflow = self._dbos.start_workflow(self._receiver)
            time.sleep(pause)
            self._dbos.send(workflow.workflow_id, "now", _TOPIC)
            sent = time.perf_counter()
            taken.append(workflow.get_result() - sent)
        return taken


@contextmanager
def launched(directory: str) -> Iterator[DbosPeer]:
    """Run DBOS on a database in ``directory``, in WAL mode, with SQLite's own FULL sync."""
    path = f"{directory}/dbos.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    dbos = import_module("dbos").DBOS
    dbos(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{path}",
            "log_level": "ERROR",
            "console_log_level": "ERROR",
        }
    )
    peer = DbosPeer(dbos)
    dbos.launch()
    try:
        yield peer
    finally:
        dbos.destroy(destroy_registry=True)
