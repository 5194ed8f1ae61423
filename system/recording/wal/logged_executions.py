"""The executions of a write-ahead log, computed from snapshots and entries."""

from __future__ import annotations

from collections.abc import Iterable

from system.ports import Clock
from system.recording.executions.execution import Execution
from system.recording.executions.fact import Fact
from system.recording.executions.record_builder import RecordBuilder
from system.recording.wal.logged_facts import LoggedFacts
from system.recording.wal.series import Series


class LoggedExecutions:
    """The executions of a log by id; each is put together from its facts when it is first read.

    ``headless`` are ids whose start is missing or cannot be used, as far as they were read.
    """

    def __init__(self, clock: Clock) -> None:
        self.headless: set[str] = set()
        self._clock = clock
        self._facts = LoggedFacts()
        self._read: dict[str, Execution | None] = {}

    def resume(self, execution_id: str, facts: list[Fact]) -> None:
        """Continue with an execution of a snapshot, which has these facts."""
        self._facts.resume(execution_id, facts)

    def apply(self, log: Iterable[Series], after: int = 0) -> None:
        """Apply the entries whose sequence number is above ``after``."""
        for series in log:
            self._facts.add(series, after)

    def __len__(self) -> int:
        """Return the number of executions that have facts in the log."""
        return len(self._facts)

    def get(self, execution_id: str) -> Execution | None:
        """Return an execution, or None if the log does not have its start."""
        if execution_id not in self._read:
            self._read[execution_id] = self._put_together(execution_id)
        return self._read[execution_id]

    def _put_together(self, execution_id: str) -> Execution | None:
        builder = RecordBuilder()
        try:
            for fact in self._facts.of(execution_id):
                # Pieces of a payload whose first piece is lost are not a fact.
                if (parsed := fact.parsed()) is not None:
                    builder.take_parsed(fact, parsed)
        except ValueError:
            self.headless.add(execution_id)
            return None
        return None if builder.start is None else Execution.resumed(self._clock, builder)

    def add(self, execution: Execution) -> None:
        """Add an execution that recovery has found elsewhere."""
        self._read[execution.execution_id] = execution

    def all(self) -> dict[str, Execution]:
        """Return all executions by id, those that were added last."""
        found = {each: self.get(each) for each in [*self._facts.ids(), *self._read]}
        return {each: execution for each, execution in found.items() if execution is not None}

    def corrupted(self) -> list[str]:
        """Return the ids of executions that lack an event or their start, sorted."""
        damaged = {key for key, each in self.all().items() if each.is_corrupted}
        return sorted(self.headless | damaged)
