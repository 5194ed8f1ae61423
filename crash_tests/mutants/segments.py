"""Mutants of snapshots: segments that are lost, or say something else than the lines before."""

from __future__ import annotations

from oracles.runtime.violations import ConversationMismatch, WrongSnapshot
from oracles.violation import LostAck, SilentEmpty
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
    "a snapshot forgets the ids of the operator's messages",
    "runtime-segments",
    (WrongSnapshot,),
    (
        SourcePatch(
            "system.agents.history",
            '"from_user": list[Json](sorted(self.from_user)),',
            '"from_user": [],',
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
