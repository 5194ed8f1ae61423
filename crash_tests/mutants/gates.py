"""Mutants of an agent's state: permits, reminders, metadata, turns that differ from the log."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.durable.violations import EarlyTrigger
from oracles.runtime.violations import (
    EarlyReminder,
    EffectsMismatch,
    GateIgnored,
    LateReminder,
    UnreturnedMessages,
)
from oracles.violation import LostAck, OutOfSync, Phantom, Starved
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

permit_is_not_used_up = Mutant(
    "a permitted turn does not use up its permit",
    "runtime",
    (GateIgnored, OutOfSync),
    (
        SourcePatch(
            "system.agents.history",
            """
            if turn.permitted:
                self.permits = max(0, self.permits - 1)
            """,
            "",
        ),
    ),
)

opened_gate_keeps_its_permits = Mutant(
    "the permits of a gate outlive its opening",
    patches=(
        SourcePatch(
            "system.agents.history",
            """
            self.permits = 0
            for turn in self.open_turns.values():
                turn.permitted = False
            """,
            """
            for turn in self.open_turns.values():
                turn.permitted = False
            """,
        ),
    ),
    tests=(
        f"{AGENT_TESTS}/test_history.py::test_permits_end_with_the_gate_and_never_fall_below_none",
    ),
)

gate_is_not_checked = Mutant(
    "an agent whose gate is closed takes turns",
    "runtime",
    (GateIgnored,),
    (
        SourcePatch(
            "system.agents.agent",
            "not history.ended and not self.log.stopped and (not history.gated or history.permits)",
            "not history.ended and not self.log.stopped",
        ),
    ),
)

used_permit_is_not_logged = Mutant(
    "the line of a turn does not say that it used up a permit",
    "runtime",
    (EffectsMismatch, GateIgnored, OutOfSync),
    (
        SourcePatch(
            "system.agents.turn_complete",
            '"permitted": self.permitted,',
            '"permitted": False,',
        ),
    ),
)

reminder_comes_early = Mutant(
    "the time of a reminder is rounded down to minutes",
    "runtime",
    (EarlyReminder, EarlyTrigger),
    (
        SourcePatch(
            "system.agents.apply_outbox",
            "REMINDER.source, reminder.payload, None, session_id, seconds_of(reminder.due_ns),",
            "REMINDER.source, reminder.payload, None, session_id, reminder.due_ns // 60e9 * 60,",
        ),
    ),
)

cancelled_reminder_comes_back = Mutant(
    "the line of a turn does not contain the reminders that it has cancelled",
    "runtime",
    (EffectsMismatch, LateReminder, OutOfSync, Phantom),
    (
        SourcePatch(
            "system.agents.turn_complete",
            '"cancelled": list[Json](self.cancelled),',
            '"cancelled": [],',
        ),
    ),
)

metadata_are_replaced = Mutant(
    "the metadata of a turn replace those of the turns before it",
    "runtime",
    (OutOfSync,),
    (
        SourcePatch(
            "system.agents.history",
            "self.metadata.update(turn.metadata)",
            "self.metadata = turn.metadata or self.metadata",
        ),
    ),
)

reminders_of_the_turn_do_not_start = Mutant(
    "the trigger of a reminder is emitted by the next boot only",
    "runtime",
    (LateReminder, Starved),
    (
        SourcePatch(
            "system.agents.dispatcher",
            "if turn.has_state_entries:",
            "if turn.trigger_id is not None:",
        ),
    ),
)

turn_line_has_no_barrier = Mutant(
    "a turn is committed by a line without a barrier",
    "runtime",
    (LostAck, OutOfSync, Phantom),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            await self._write(
                [(event.TURN_COMPLETE, turn.data())],
                lambda lines: history.apply_turn(turn, lines[0].seq, lines[0].ts),
            )
            """,
            """
            lines = self._write_unsynced([(event.TURN_COMPLETE, turn.data())])
            history.apply_turn(turn, lines[0].seq, lines[0].ts)
            """,
        ),
    ),
)

turn_is_applied_before_its_line = Mutant(
    "a turn is applied in memory before the disk has its line",
    "runtime",
    (LostAck, OutOfSync, Phantom, UnreturnedMessages),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            await self._write(
                [(event.TURN_COMPLETE, turn.data())],
                lambda lines: history.apply_turn(turn, lines[0].seq, lines[0].ts),
            )
            """,
            """
            history.apply_turn(turn, history.seq + 1, history.last_ts)
            await self._write([(event.TURN_COMPLETE, turn.data())], lambda _: None)
            """,
        ),
    ),
)
