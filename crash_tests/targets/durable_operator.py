"""The calls of a person, schedules, newer triggers and expired keys, for the durable target."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from crash_tests.targets.durable_store import ROUTER, SECOND_NS
from crash_tests.targets.durable_triggers import SLOTS, DurableTriggers
from oracles.durable.nominal_times import CronTimes, NominalTimes, OneTime, Periodic
from oracles.durable.shadow_schedules import armed, deleted
from oracles.durable.shadow_state import ExpectedSchedule
from powercut.fuzz.action import Arguments
from sim.choices import Choices
from system.durable.errors import AlreadyDecided, NoRecipient
from system.durable.schedule import ScheduleSpec

MOST_SCHEDULES: Final = 3
WINDOW_S: Final = 700_000
"""More seconds than any key of scope ``window`` is held."""
CRON: Final = {"*/20 * * * *": "UTC", "30 9 * * 1-5": "Europe/Berlin"}
"""Cron specifications and their zones."""


class DurableOperator(DurableTriggers):
    """Decisions about stopped triggers; schedules that come and go; keys that expire."""

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
        trigger = state.triggers[name]
        holder = state.holder(trigger.key, now)
        is_refused = holder not in (None, name)
        if trigger.session in self._sessions.ended:
            is_refused |= not trigger.routed
            state = state.with_trigger(name, replace(trigger, session=None, routed=False))
        try:
            self._do(
                lambda transaction: triggers.retry(transaction, trigger_id),
                self._shadow.state if is_refused else state.retried(name, now),
            )
        except (AlreadyDecided, NoRecipient):
            self._shadow.refuse()
            if not is_refused:
                raise
            return "replaced"
        return "retried"

    # -- schedules -----------------------------------------------------------------------

    def _living(self) -> list[str]:
        schedules = self._shadow.state.schedules.items()
        return [each for each, schedule in schedules if schedule.ended_at is None]

    def _may_schedule(self) -> bool:
        return self._open and len(self._living()) < MOST_SCHEDULES

    def _propose_schedule(self, choices: Choices) -> Arguments:
        return {
            "session": choices.pick("session", (*self._sessions.living, ROUTER)),
            "period": choices.pick("period", (60, 3_600, 0, *CRON)),
            "catch_up": choices.pick("catch_up", ("latest", "all", "skip")),
        }

    def _schedule(self, arguments: Arguments) -> str:
        """Create a schedule of one of the kinds ``every``, ``cron`` and ``once``."""
        self._number += 1
        schedule_id, now = f"s{self._number}", self._now()
        catch_up = str(arguments.get("catch_up", "latest"))
        spec = ScheduleSpec(
            "cron", str(arguments["period"]), session_id=str(arguments["session"]) or None,
            payload={"s": schedule_id}, description=f"about {schedule_id}", catch_up=catch_up,
        )  # fmt: skip
        possible: list[NominalTimes]
        if arguments["period"] in CRON:
            spec = spec._replace(zone=CRON[spec.spec])
            possible = [CronTimes(spec.spec, spec.zone)]
        elif arguments["period"]:
            spec = spec._replace(kind="every")
            moments = sorted({round(now), round(now + 0.01)})
            possible = [Periodic(each, int(spec.spec)) for each in moments]
        else:
            moment = int(now) + 100
            spec = spec._replace(kind="once", spec=datetime.fromtimestamp(moment, UTC).isoformat())
            possible = [OneTime(moment)]
        after = [
            armed(
                self._shadow.state, schedule_id,
                ExpectedSchedule(
                    times, spec.session_id, times.after(int(now)), None, catch_up,
                    spec.kind == "once", definition=(spec.kind, spec.spec, spec.zone),
                    payload=f'{{"s":"{schedule_id}"}}', description=spec.description,
                ),
                now,
            )
            for times in possible
        ]  # fmt: skip
        created = self._do(
            lambda transaction: self._stores.schedules.create(transaction, spec, schedule_id),
            *after,
        )
        return "refused" if created is None else "scheduled"

    def _has_schedules(self) -> bool:
        return self._open and bool(self._living())

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

    def _unschedule(self, _arguments: Arguments) -> str:
        """Delete the oldest living schedule."""
        schedule_id = self._living()[0]
        self._do(
            lambda transaction: self._stores.schedules.delete(transaction, schedule_id),
            deleted(self._shadow.state, schedule_id, self._now()),
        )
        return "deleted"

    # -- newer triggers ------------------------------------------------------------------

    def _renewable(self) -> list[str]:
        """Return the keys of claimed triggers that a newer one would replace if they waited."""
        keys = [claim.trigger.dedup_key or "" for claim in self._claims.values()]
        return [key for key in keys if key.startswith("memory:")]

    def _has_renewable(self) -> bool:
        return self._open and bool(self._renewable())

    def _renew(self, _arguments: Arguments) -> str:
        """Emit a newer trigger of the family of one that a turn handles."""
        _, session, slot = self._renewable()[0].split(":")
        other = (int(slot) + 1) % SLOTS
        return self._emit(
            {"kind": "memory", "session": session, "slot": other, "delay": 0, "again": False}
        )

    # -- keys whose window ends ----------------------------------------------------------

    def _window_keys(self, *, held: bool) -> list[str]:
        """Return the keys of scope ``window`` that are held now, or those that are free again."""
        state, now = self._shadow.state, self._now()
        keys = [key for key in state.keys if key.startswith("immediate:")]
        return [key for key in keys if (state.holder(key, now) is not None) is held]

    def _has_held_window(self) -> bool:
        return self._open and bool(self._window_keys(held=True))

    def _expire(self, _arguments: Arguments) -> str:
        """Let the windows of all keys end."""
        self._world.clock.advance(WINDOW_S * SECOND_NS)
        return "expired"

    def _has_expired(self) -> bool:
        return self._open and bool(self._window_keys(held=False))

    def _emit_expired(self, _arguments: Arguments) -> str:
        """Emit a trigger whose key was taken, until its window ended."""
        slot = int(self._window_keys(held=False)[0].removeprefix("immediate:"))
        session = self._sessions.living[0]
        return self._emit(
            {"kind": "immediate", "session": session, "slot": slot, "delay": 0, "again": False}
        )
