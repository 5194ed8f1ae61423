"""The calls of a person, and schedules, for the target of durable execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from crash_tests.targets.durable_store import SESSIONS
from crash_tests.targets.durable_triggers import DurableTriggers
from oracles.durable.shadow_schedules import armed, deleted
from oracles.durable.shadow_state import ExpectedSchedule
from powercut.fuzz.action import Arguments
from sim.choices import Choices
from system.durable.errors import AlreadyDecided
from system.durable.schedule import ScheduleSpec


class DurableOperator(DurableTriggers):
    """Decisions about stopped triggers; schedules that are created and deleted."""

    # -- a person ------------------------------------------------------------------------

    def _stopped(self) -> list[str]:
        triggers = self._shadow.state.triggers.items()
        return [name for name, each in triggers if each.status in ("FAILED", "DEAD")]

    def _has_stopped(self) -> bool:
        return self._open and bool(self._stopped())

    def _propose_resolve(self, choices: Choices) -> Arguments:
        return {
            "which": choices.integer("which", 0, 2), "retry": bool(choices.integer("retry", 0, 1))
        }  # fmt: skip

    def _resolve(self, arguments: Arguments) -> str:
        """Retry or discard a stopped trigger."""
        stopped = self._stopped()
        name = stopped[int(str(arguments["which"])) % len(stopped)]
        state, now, triggers = self._shadow.state, self._now(), self._stores.triggers
        trigger_id = self._shadow.ids[name]
        if not arguments["retry"]:
            self._do(
                lambda transaction: triggers.discard(transaction, trigger_id),
                state.settled(name, "discarded", now),
            )
            return "discarded"
        holder = state.holder(state.triggers[name].key, now)
        is_held = holder not in (None, name)
        try:
            self._do(
                lambda transaction: triggers.retry(transaction, trigger_id),
                state if is_held else state.retried(name, now),
            )
        except AlreadyDecided:
            self._shadow.refuse()
            if not is_held:
                raise
            return "replaced"
        return "retried"

    # -- schedules -----------------------------------------------------------------------

    def _living(self) -> list[str]:
        schedules = self._shadow.state.schedules.items()
        return [each for each, schedule in schedules if schedule.upcoming is not None]

    def _may_schedule(self) -> bool:
        return self._open and len(self._living()) < len(SESSIONS)

    def _propose_schedule(self, choices: Choices) -> Arguments:
        return {
            "session": choices.pick("session", SESSIONS),
            "period": choices.pick("period", (60, 3_600, 0)),
        }

    def _schedule(self, arguments: Arguments) -> str:
        """Create a schedule for every so many seconds, or once."""
        self._number += 1
        schedule_id, session = f"s{self._number}", str(arguments["session"])
        period, payload = int(str(arguments["period"])), f'{{"s":"s{self._number}"}}'
        state, now = self._shadow.state, self._now()
        moments: Sequence[int] = sorted({round(now), round(now + 0.01)})
        spec = ScheduleSpec(
            "every", str(period), session_id=session, payload={"s": schedule_id}
        )  # fmt: skip
        if not period:
            moments = [int(now) + 100]
            spec = replace(
                spec, kind="once", spec=datetime.fromtimestamp(moments[0], UTC).isoformat()
            )
        after = [
            armed(
                state, schedule_id,
                ExpectedSchedule(period or None, session, moment + period), payload,
            )
            for moment in moments
        ]  # fmt: skip
        created = self._do(
            lambda transaction: self._stores.schedules.create(transaction, spec, schedule_id),
            *after,
        )
        return "refused" if created is None else "scheduled"

    def _has_schedules(self) -> bool:
        return self._open and bool(self._living())

    def _unschedule(self, _arguments: Arguments) -> str:
        """Delete the oldest living schedule."""
        schedule_id = self._living()[0]
        self._do(
            lambda transaction: self._stores.schedules.delete(transaction, schedule_id),
            deleted(self._shadow.state, schedule_id, self._now()),
        )
        return "deleted"
