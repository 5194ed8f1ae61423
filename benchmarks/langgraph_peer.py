"""LangGraph's SQLite checkpointer: the two writes of one step of a graph.

A step saves the writes of the task and then the checkpoint. Only these two calls are
measured, not the graph around them.
"""

from __future__ import annotations

import sqlite3
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any


def installed() -> bool:
    """Whether the peer can be measured here."""
    return find_spec("langgraph") is not None


class LangGraphPeer:
    """One thread of checkpoints in a database in ``directory``; the saver sets WAL itself."""

    def __init__(self, directory: str) -> None:
        self._connection = sqlite3.connect(f"{directory}/langgraph.sqlite", check_same_thread=False)
        self._saver: Any = import_module("langgraph.checkpoint.sqlite").SqliteSaver(
            self._connection
        )
        self._saver.setup()
        self._empty = import_module("langgraph.checkpoint.base").empty_checkpoint
        self._config: Any = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}

    def steps(self, count: int, payload: dict[str, str]) -> float:
        """Return the seconds that ``count`` steps took."""
        start = perf_counter()
        for step in range(count):
            checkpoint = self._empty()
            checkpoint["channel_values"] = payload
            metadata = {"source": "loop", "step": step, "parents": {}}
            self._config = self._saver.put(self._config, checkpoint, metadata, {})
            self._saver.put_writes(self._config, list(payload.items()), f"task-{step}")
        return perf_counter() - start

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
