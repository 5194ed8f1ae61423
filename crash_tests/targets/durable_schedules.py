"""Schedules that are made, changed, paused, resumed and deleted, for the durable target."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from crash_tests.targets.durable_store import ROUTER, SECOND_NS
from crash_tests.targets.durable_triggers import DurableTriggers
from oracles.durable.marks import SCHEDULE_CHANGED
from oracles.durable.nominal_times import CronTimes, NominalTimes, OneTime, Periodic
from oracles.durable.shadow_schedules import armed, changed, deleted, paused, resumed
from oracles.durable.shadow_state import ExpectedSchedule
from powercut.fuzz.action import Arguments
from sim.choices import Choices
from system.durable.schedule import ScheduleSpec

MOST_SCHEDULES: Final = 3
CRON: Final = {"*/20 * * * *": "UTC", "30 9 * * 1-5": "Europe/Berlin"}
"""Cron specifications and their zones."""
PERIODS: Final = (60, 3_600)
"""The seconds of schedules of the kind ``every``."""
ONCE: Final = 0
CALL_S: Final = 0.01
"""More seconds than pass between the beginning of a call and its transaction."""


class DurableSchedules(DurableTriggers):
    """Schedules that come and go, and change."""

    def _living(self) -> list[str]:
        schedules = self._shadow.state.schedules.items()
        return [each for each, schedule in schedules if schedule.ended_at is None]

    def _with_pause(self, *, is_paused: bool) -> list[str]:
        """Return the living schedules that are paused, or those that are not."""
        schedules = self._shadow.state.schedules
        return [each for each in self._living() if schedules[each].is_paused is is_paused]

    def _fired(self) -> list[str]:
        """Return the living schedules of which an occurrence was claimed."""
        schedules = self._shadow.state.schedules
        return [each for each in self._living() if schedules[each].last is not None]

    def _has_schedules(self) -> bool:
        return self._open and bool(self._living())

    def _has_fired(self) -> bool:
        return self._open and bool(self._fired())

    def _has_running(self) -> bool:
        return self._open and bool(self._with_pause(is_paused=False))

    def _has_paused(self) -> bool:
        return self._open and bool(self._with_pause(is_paused=True))

    # -- definitions ---------------------------------------------------------------------

    def _may_schedule(self) -> bool:
        return self._open and len(self._living()) < MOST_SCHEDULES

    def _propose_schedule(self, choices: Choices) -> Arguments:
        return self._proposed(choices, PERIODS)

    def _proposed(self, choices: Choices, periods: Sequence[int]) -> Arguments:
        return {
            "session": choices.pick("session", (*self._sessions.living, ROUTER)),
            "period": choices.pick("period", (*periods, ONCE, *CRON)),
            "catch_up": choices.pick("catch_up", ("latest", "all", "skip")),
        }

    def _schedule(self, arguments: Arguments) -> str:
        """Create a schedule of one of the kinds ``every``, ``cron`` and ``once``."""
        self._number += 1
        schedule_id, now = f"s{self._number}", self._now()
        anchors = sorted({round(now), round(now + CALL_S)})
        spec, possible = _definition(arguments, schedule_id, int(now) + 100, anchors)
        after = [
            armed(
                self._shadow.state, schedule_id,
                _expected(spec, schedule_id, times, times.after(int(now))), now,
            )
            for times in possible
        ]  # fmt: skip
        created = self._do(
            lambda transaction: self._stores.schedules.create(transaction, spec, schedule_id),
            *after,
        )
        return "refused" if created is None else "scheduled"

    def _propose_change(self, choices: Choices) -> Arguments:
        return self._proposed_for(choices, self._living())

    def _propose_change_fired(self, choices: Choices) -> Arguments:
        return self._proposed_for(choices, self._fired())

    def _proposed_for(self, choices: Choices, schedules: Sequence[str]) -> Arguments:
        schedule_id = choices.pick("schedule", schedules)
        # The others were made at a time that is known to the system alone.
        times = self._shadow.state.schedules[schedule_id].times
        periods = PERIODS if isinstance(times, Periodic) else ()
        return {"schedule": schedule_id, **self._proposed(choices, periods)}

    def _change(self, arguments: Arguments) -> str:
        """Give a schedule other times and content."""
        schedule_id, state, now = str(arguments["schedule"]), self._shadow.state, self._now()
        if schedule_id not in self._living():
            return "ended"
        old = state.schedules[schedule_id]
        anchors = [old.times.anchor] if isinstance(old.times, Periodic) else []
        if arguments["period"] in PERIODS and not anchors:
            return "unknown anchor"
        self._number += 1
        label = f"{schedule_id} changed {self._number}"
        moment = max(int(now), old.last or 0) + 100
        spec, [times] = _definition(arguments, label, moment, anchors)
        new = _expected(spec, label, times, None)
        if old.last is not None:
            self.marks.reach(SCHEDULE_CHANGED)
        self._do(
            lambda transaction: self._stores.schedules.change(transaction, schedule_id, spec),
            *(changed(state, schedule_id, new, now, each) for each in (now, now + CALL_S)),
        )
        return "changed"

    def _unschedule(self, _arguments: Arguments) -> str:
        """Delete the oldest living schedule."""
        schedule_id = self._living()[0]
        self._do(
            lambda transaction: self._stores.schedules.delete(transaction, schedule_id),
            deleted(self._shadow.state, schedule_id, self._now()),
        )
        return "deleted"

    # -- time ----------------------------------------------------------------------------

    def _pause(self, _arguments: Arguments) -> str:
        """Pause the newest running schedule."""
        schedule_id = self._with_pause(is_paused=False)[-1]
        self._do(
            lambda transaction: self._stores.schedules.pause(transaction, schedule_id),
            paused(self._shadow.state, schedule_id, self._now()),
        )
        return "paused"

    def _resume(self, _arguments: Arguments) -> str:
        """Resume the oldest paused schedule."""
        schedule_id, now = self._with_pause(is_paused=True)[0], self._now()
        self._do(
            lambda transaction: self._stores.schedules.resume(transaction, schedule_id),
            *(
                resumed(self._shadow.state, schedule_id, now, each)
                for each in (now, now + CALL_S)
            ),
        )  # fmt: skip
        return "resumed"

    def _propose_outage(self, choices: Choices) -> Arguments:
        return {
            "which": choices.integer("which", 0, MOST_SCHEDULES - 1),
            "late": choices.pick("late", (1, 130, 4_000, 90_000)),
        }

    def _outage(self, arguments: Arguments) -> str:
        """Let the next occurrence of a schedule be late by so many seconds."""
        living = self._living()
        schedule = self._shadow.state.schedules[living[int(str(arguments["which"])) % len(living)]]
        if schedule.upcoming is None:
            return "paused"
        seconds = schedule.upcoming + int(str(arguments["late"])) - int(self._now())
        self._world.clock.advance(max(0, seconds) * SECOND_NS)
        return "late"


def _definition(
    arguments: Arguments, label: str, moment: int, anchors: Sequence[int]
) -> tuple[ScheduleSpec, list[NominalTimes]]:
    """Return a specification with the times that it may have.

    One of the kind ``once`` has the time ``moment``; periods are counted from one of ``anchors``.
    """
    spec = ScheduleSpec(
        "cron", str(arguments["period"]), session_id=str(arguments["session"]) or None,
        payload={"s": label}, description=f"about {label}",
        catch_up=str(arguments.get("catch_up", "latest")),
    )  # fmt: skip
    if arguments["period"] in CRON:
        spec = spec._replace(zone=CRON[spec.spec])
        return spec, [CronTimes(spec.spec, spec.zone)]
    if arguments["period"]:
        return spec._replace(kind="every"), [Periodic(each, int(spec.spec)) for each in anchors]
    spec = spec._replace(kind="once", spec=datetime.fromtimestamp(moment, UTC).isoformat())
    return spec, [OneTime(moment)]


def _expected(
    spec: ScheduleSpec, label: str, times: NominalTimes, upcoming: int | None
) -> ExpectedSchedule:
    return ExpectedSchedule(
        times, spec.session_id, upcoming, None, spec.catch_up, spec.kind == "once",
        definition=(spec.kind, spec.spec, spec.zone), payload=f'{{"s":"{label}"}}',
        description=spec.description,
    )  # fmt: skip
