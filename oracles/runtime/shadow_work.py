"""The specification of the durable work of a runtime: ``state.db`` beside the logs, and effects.

``rows`` are all rows of the database, in one moment; ``NO_ROWS`` if the root has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oracles.durable.rows import Rows
from oracles.durable.shadow_effects import ShadowEffects, is_final
from oracles.runtime.log_records import ActivityRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_triggers import ShadowTriggers
from oracles.runtime.work_contents import check_activity
from oracles.runtime.work_laws import DECIDED, check_lines, check_recovered, check_reports
from oracles.violation import FalseAlarm, LostAck, Phantom

SECOND_NS = 1_000_000_000


class ShadowWork:
    """``triggers`` checks the triggers, ``effects`` the ledger of irreversible actions."""

    def __init__(self, most_attempts: int = 5) -> None:
        self.triggers = ShadowTriggers(most_attempts)
        self.effects = ShadowEffects()
        self._ended: set[str] = set()
        self._asked: dict[str, ActivityRecord] = {}
        self._answered: set[str] = set()

    def ask(self, key: str, action: str, arguments: Mapping[str, Any]) -> None:
        """Record that the operator asks for an activity, durably or in flight."""
        self._asked[key] = ActivityRecord(key, action, arguments, None)

    def acknowledge_activity(self, key: str, status: str) -> None:
        """Record that the operator was given the outcome of an activity."""
        self._answered.add(key)
        if status not in DECIDED:
            raise FalseAlarm("an activity has returned without an outcome", key=key, status=status)

    def check(self, snapshot: RootSnapshot, rows: Rows, now_ns: int) -> None:
        """Check a snapshot that is not older than ``rows``; ``now_ns`` is the latest time."""
        self.triggers.check(snapshot, rows, now_ns)
        self._ended.update(row["id"] for row in rows.triggers if row["status"] == "DONE")
        self._ended.update(key for key, row in rows.activities.items() if is_final(row))
        ended = (row for row in rows.schedules.values() if row["ended_at"] is not None)
        self._ended.update(row["schedule_id"] for row in ended)
        check_lines(snapshot, rows, self._ended, self.triggers.stopped_keys)
        self._check_asked(rows)

    def _check_asked(self, rows: Rows) -> None:
        """Check the activities that no agent has asked for."""
        for key, asked in self._asked.items():
            row = rows.activities.get(key)
            if row is not None:
                check_activity(asked, row)
            elif key in self._answered:
                raise LostAck("an activity was acknowledged, and is not in the ledger", key=key)
        for key, row in rows.activities.items():
            if row["session_id"] is None and key not in self._asked:
                raise Phantom("an activity exists that nothing has asked for", actual=row)

    def check_effects(
        self, rows: Rows, effects: Mapping[str, int], requests: Mapping[str, int], now_ns: int
    ) -> None:
        """Compare the ledger with effects and requests of the same moment."""
        self.effects.check(rows, effects, requests, now_ns / SECOND_NS)

    def settle(self, snapshot: RootSnapshot, rows: Rows, now_ns: int) -> None:
        """Check the first snapshot after a recovery, before any turn runs."""
        self.check(snapshot, rows, now_ns)
        check_recovered(snapshot, rows)
        check_reports(snapshot, rows, self.triggers.decided)
        self.triggers.settle(snapshot, rows)

    def check_quiesced(
        self,
        snapshot: RootSnapshot,
        rows: Rows,
        now_ns: int,
        is_unfit: Callable[[str], bool] = lambda _: False,
    ) -> int:
        """Require that all accepted work is done; ``now_ns`` is the time of the runtime.

        ``is_unfit`` says of a trigger that the router has refused all candidates. Returns the
        number of triggers that turns have settled.
        """
        check_reports(snapshot, rows, self.triggers.decided)
        return self.triggers.check_quiesced(snapshot, rows, now_ns, is_unfit)
