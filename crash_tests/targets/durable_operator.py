"""The calls of a person, newer triggers and expired keys, for the durable target."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from crash_tests.targets.durable_schedules import DurableSchedules
from crash_tests.targets.durable_store import SECOND_NS
from crash_tests.targets.durable_triggers import SLOTS
from powercut.fuzz.action import Arguments
from sim.choices import Choices
from system.durable.errors import AlreadyDecided, NoRecipient

WINDOW_S: Final = 700_000
"""More seconds than any key of scope ``window`` is held."""


class DurableOperator(DurableSchedules):
    """Decisions about stopped triggers; newer triggers; keys that expire."""

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
