"""The targets of a runtime at rest: logs that begin new segments, agents that are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from crash_tests.targets.runtime import SECOND_NS, RuntimeTarget
from oracles.runtime.marks import COLLECTION_MARKS, SNAPSHOT_MARKS
from system.collector import CollectionOptions
from system.ports import Host, Provider
from system.runtime import Options, Runtime

SNAPSHOT_LINES: Final = 4
COLLECTION: Final = CollectionOptions(60 * SECOND_NS)


def _recovering(**changes: Any) -> Any:
    """Return the call that recovers a runtime with changed options."""

    async def recovered(host: Host, providers: Mapping[str, Provider], options: Options) -> Runtime:
        return await Runtime.recover(host, providers, replace(options, **changes))

    return recovered


class VariedRuntimeTarget(RuntimeTarget):
    """A runtime with changed options, which reaches further marks."""

    def __init__(self, tag: str, marks: Sequence[str], **changes: Any) -> None:
        super().__init__(tag, recover=_recovering(**changes))
        self.expected_marks = (*RuntimeTarget.expected_marks, *marks)


def runtime_segments() -> VariedRuntimeTarget:
    """Return a runtime that keeps the segments of its logs short."""
    return VariedRuntimeTarget("runtime-segments", SNAPSHOT_MARKS, snapshot_lines=SNAPSHOT_LINES)


def runtime_collected() -> VariedRuntimeTarget:
    """Return a runtime that collects agents a minute behind their end."""
    return VariedRuntimeTarget(
        "runtime-collected", COLLECTION_MARKS, snapshot_lines=4 * SNAPSHOT_LINES,
        collection=COLLECTION,
    )  # fmt: skip
