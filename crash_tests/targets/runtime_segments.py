"""The targets of a runtime at rest: logs that begin new segments, agents that are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from crash_tests.targets.runtime import RuntimeTarget
from crash_tests.targets.runtime_boots import HOUR_NS, SECOND_NS
from oracles.runtime.marks import (
    COLLECTION_FINISHED,
    COLLECTION_MARKS,
    SNAPSHOT_MARKS,
    SNAPSHOT_UNFINISHED,
)
from oracles.violation import LostAck
from powercut.fuzz.action import ActionKind, Arguments
from system.collector import CollectionOptions
from system.errors import UnknownMessage
from system.ports import Host, Provider
from system.runtime import Options, Runtime

SNAPSHOT_LINES: Final = 4
MONTH_NS: Final = 31 * 24 * HOUR_NS
SURELY_KNOWN_NS: Final = 25 * 24 * HOUR_NS
"""The time for which ids are certainly known: thirty days, less the steps of the wall clock."""
COLLECTION: Final = CollectionOptions(60 * SECOND_NS)


def recovering(**changes: Any) -> Any:
    """Return the call that recovers a runtime with changed options."""

    async def recovered(host: Host, providers: Mapping[str, Provider], options: Options) -> Runtime:
        return await Runtime.recover(host, providers, replace(options, **changes))

    return recovered


class VariedRuntimeTarget(RuntimeTarget):
    """A runtime with changed options, which reaches further marks.

    When it quiesces, the operator repeats all calls whose ids snapshots may have omitted.
    """

    rare_marks: Sequence[str] = (
        *RuntimeTarget.rare_marks, SNAPSHOT_UNFINISHED, COLLECTION_FINISHED,
    )  # fmt: skip

    def __init__(self, tag: str, marks: Sequence[str], **changes: Any) -> None:
        super().__init__(tag, recover=recovering(**changes))
        self.expected_marks = (*RuntimeTarget.expected_marks, *marks)
        # The time of the first acknowledgement of each message.
        self._acknowledged: dict[str, int] = {}

    def actions(self) -> Sequence[ActionKind]:
        """Return the actions of the runtime, and the passing of a month."""
        return (*super().actions(), ActionKind("month", 1, self._month, ready=self._has_agents))

    def _month(self, _arguments: Arguments) -> str:
        if self.fault_plan:
            return "a fault would be met by each attempt of a month"
        return self._advance({"seconds": MONTH_NS // SECOND_NS, "back": 0})

    def _acknowledge(self, arguments: Arguments) -> str:
        message_id = self._runtime.view().user[0].message_id
        outcome = super()._acknowledge(arguments)
        if outcome == "ack":
            self._acknowledged.setdefault(message_id, self._latest_ns())
        return outcome

    def _complete_all(self) -> None:
        super()._complete_all()
        self._call(self._operator.repeat_sends(self._runtime))
        for message_id, since_ns in self._acknowledged.items():
            try:
                self._call(self._runtime.acknowledge(message_id))
            except UnknownMessage as unknown:
                if self._latest_ns() - since_ns < SURELY_KNOWN_NS:
                    raise LostAck(
                        "an acknowledged message is unknown", message_id=message_id
                    ) from unknown
        self._world.loop.run_until_idle()
        self._checked()


def runtime_segments() -> VariedRuntimeTarget:
    """Return a runtime with short segments of its logs."""
    return VariedRuntimeTarget("runtime-segments", SNAPSHOT_MARKS, snapshot_lines=SNAPSHOT_LINES)


def runtime_collected() -> VariedRuntimeTarget:
    """Return a runtime that collects agents a minute after their end."""
    return VariedRuntimeTarget(
        "runtime-collected", COLLECTION_MARKS, snapshot_lines=4 * SNAPSHOT_LINES,
        collection=COLLECTION,
    )  # fmt: skip
