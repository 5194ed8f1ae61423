"""Mutants of the durable work of turns and programs: reports, schedules, kept outcomes."""

from __future__ import annotations

from oracles.durable.violations import RepeatedEffect, WrongOutcome
from oracles.runtime.violations import LostReport, TornLine
from oracles.violation import InvalidState, LostAck, TornRecord
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_TARGET = "runtime-durable"

next_report_has_the_id_of_the_first = Mutant(
    "the outcome after a decision has the id of the first outcome",
    _TARGET,
    (WrongOutcome, LostReport),
    (
        SourcePatch(
            "system.durable.report",
            'return f"{message_id}.{self._epoch}.{next(self._numbers)}"',
            "return message_id",
        ),
    ),
)

ended_schedule_of_a_turn_is_kept = Mutant(
    "a schedule that its own turn ends is kept",
    _TARGET,
    (TornLine,),
    (
        SourcePatch(
            "system.durable.stores",
            "if schedule_id in outbox.unscheduled:",
            "if not schedule_id:",
        ),
    ),
)

next_occurrence_has_no_body = Mutant(
    "the occurrence of a schedule is emitted without payload and description",
    _TARGET,
    (InvalidState, TornRecord),
    (
        SourcePatch(
            "system.durable.schedule_store",
            "producer, producer.source, schedule.payload_json, schedule.description,",
            'producer, producer.source, "null", None,',
        ),
    ),
)

events_of_a_task_are_rewritten = Mutant(
    "a checkpoint rewrites the last event of its task",
    _TARGET,
    (TornLine,),
    (
        SourcePatch(
            "system.durable.task_store",
            "for event in events:",
            """
            if old is not None:
                TASK_EVENTS.update(transaction, events[0]._replace(seq=old.last_seq))
            for event in events:
            """,
        ),
    ),
)

outcome_for_a_program_is_removed = Mutant(
    "the outcome of a program's activity is removed after a day",
    _TARGET,
    (LostAck, RepeatedEffect),
    (SourcePatch("system.durable.retention", 'f" AND {_NEVER_REPEATED} LIMIT ?",', '" LIMIT ?",'),),
)

activities_precede_their_line = Mutant(
    "an activity is performed when it is asked for, and not behind the line of its turn",
    _TARGET,
    (LostAck, RepeatedEffect, TornLine),
    (
        SourcePatch(
            "system.agents.durable_tools",
            """
            self._work.activities.append(OutboxActivity(key, action.name, given, task_id))
            """,
            """
            self._work.activities.append(OutboxActivity(key, action.name, given, task_id))
            durable, session_id = self._durable, self._agent.session_id
            if durable.stores is not None and durable.state is not None:
                from system.durable.activity import Intent
                intent = Intent(key, action, given, session_id, self._turn_id, task_id)
                intend = durable.stores.activities.intend
                durable.state.transact(lambda each: intend(each, intent))
            """,
        ),
    ),
)
