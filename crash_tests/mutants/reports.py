"""Mutants of the recovery report and notices: wrong counts."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.runtime.violations import UnreportedTurnLoss
from oracles.violation import InvalidState
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

ended_agents_count_as_living = Mutant(
    "the report counts agents that have ended among the living",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.publish_report",
            "report.living = sum(agent.alive for agent in agents) - 1",
            "report.living = len(agents) - 1",
        ),
    ),
)

torn_bytes_of_one_log_count = Mutant(
    "the report has the torn bytes of the last log only",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.apply_logs",
            "report.torn_bytes += found.torn_bytes",
            "report.torn_bytes = found.torn_bytes",
        ),
    ),
)

redone_lines_are_counted_late = Mutant(
    "the redone lines are counted after they were written",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.dispatch_outboxes",
            """
            recovery.report.redone = count_due(recovery)
            await dispatcher.dispatch()
            """,
            """
            await dispatcher.dispatch()
            recovery.report.redone = count_due(recovery)
            """,
        ),
    ),
)

suspended_sessions_are_not_reported = Mutant(
    "the sessions that a boot suspends are missing in the report",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.suspend_sessions",
            """
            else:
                recovery.report.suspended.append(agent.session_id)
            """,
            "",
        ),
    ),
)

created_child_is_an_orphan = Mutant(
    "a child that recovery creates is reported as an orphan",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.publish_report",
            "report.orphans = [orphan for orphan in report.orphans if orphan not in created]",
            "report.orphans = [orphan for orphan in report.orphans if orphan or created]",
        ),
    ),
)

swept_files_of_the_root_are_not_reported = Mutant(
    "the temporary files of the root are missing in the report",
    patches=(
        SourcePatch(
            "system.recovery.lock_root",
            "recovery.report.swept += root.swept",
            "",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_recovery.py"
            "::test_temporary_files_of_sessions_and_of_the_root_are_swept"
        ),
    ),
)

finished_end_is_not_reported = Mutant(
    "an end that recovery has finished is missing in the report",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.dispatch_outboxes",
            "recovery.report.ended.append(agent.agent_id)",
            "",
        ),
    ),
)

gated_agent_gets_no_notice = Mutant(
    "an agent that may run no turn gets no recovery notice",
    "runtime",
    (UnreportedTurnLoss,),
    (
        SourcePatch(
            "system.recovery.notify_agents",
            "if agent.history.open_turns and agent.alive:",
            "if agent.history.open_turns and agent.runnable:",
        ),
    ),
)

notice_counts_itself = Mutant(
    "a recovery notice counts itself among the pending messages",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.notify_agents",
            '"pending": len(history.pending),',
            '"pending": len(history.pending) + 1,',
        ),
    ),
)

downtime_is_in_microseconds = Mutant(
    "a recovery notice gives the downtime in microseconds",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.recovery.notify_agents",
            '"downtime_ns": max(0, passed // timedelta(microseconds=1)) * 1000,',
            '"downtime_ns": max(0, passed // timedelta(microseconds=1)),',
        ),
    ),
)

redelivery_ends_the_downtime = Mutant(
    "a message that recovery redelivers ends the downtime of its recipient",
    patches=(
        SourcePatch(
            "system.recovery.notify_agents",
            "passed = datetime.fromisoformat(now) - datetime.fromisoformat(last_ts)",
            """
            last_ts = max(last_ts, history.last_ts)
            passed = datetime.fromisoformat(now) - datetime.fromisoformat(last_ts)
            """,
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_resuming.py"
            "::test_what_the_recovery_has_redelivered_does_not_end_the_downtime"
        ),
    ),
)
