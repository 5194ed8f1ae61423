"""Mutants of snapshots: segments that are lost, or say something else than the lines before."""

from __future__ import annotations

from crash_tests.mutants.folders import SYSTEM_TESTS
from oracles.runtime.violations import ConversationMismatch
from oracles.violation import Duplicated, LostAck, SilentEmpty
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

old_segment_is_removed = Mutant(
    "the segment before a snapshot is removed as soon as the new one is durable",
    "runtime-segments",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.event_log",
            """
            self._stopped = None
            self.number += 1
            """,
            """
            self._stopped = None
            files.unlink(segment_path(self.path, self.number))
            self.number += 1
            """,
        ),
    ),
)

segment_name_is_volatile = Mutant(
    "lines are acknowledged in a new segment whose name is not durable",
    "runtime-segments",
    (LostAck,),
    (
        SourcePatch(
            "system.storage.event_log",
            """
            try:
                files.sync_dir(parent_of(path))
            except OSError as error:
            """,
            """
            try:
                pass
            except OSError as error:
            """,
        ),
    ),
)

snapshot_forgets_the_operator = Mutant(
    "a snapshot forgets the ids of the operator's messages, and the database does not keep them",
    "runtime-segments",
    (Duplicated,),
    (
        SourcePatch(
            "system.agents.snapshots",
            "keep_ids(transaction, agent.session_id, sorted(ids), are_acknowledged=is_user)",
            "keep_ids(transaction, agent.session_id, [], are_acknowledged=is_user)",
        ),
    ),
)

new_segments_of_the_operator_are_removed = Mutant(
    "a segment of the log of USER is removed before it is old",
    patches=(
        SourcePatch("system.storage.segments", "if first.ts > before_ts:", "if not first.ts:"),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/agents/test_known_ids.py"
            "::test_segments_of_user_are_removed_after_thirty_days_but_for_the_last_two"
        ),
    ),
)

forgotten_ids_are_not_looked_up = Mutant(
    "a message is enqueued again whose id only the database keeps",
    patches=(
        SourcePatch(
            "system.agents.agent_log",
            "if is_known is not None and self.history.has_known_ids and await is_known():",
            "if is_known is not None and not self.history.session:",
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/agents/test_known_ids.py"
            "::test_a_message_that_the_log_has_forgotten_is_not_enqueued_again"
        ),
    ),
)

conversation_begins_at_the_snapshot = Mutant(
    "a conversation is rebuilt from the newest segment alone",
    "runtime-segments",
    (ConversationMismatch,),
    (
        SourcePatch(
            "system.agents.agent_log",
            "if log is None or len(exchanges) == self.history.turn_count:",
            "if exchanges is not None:",
        ),
    ),
)
