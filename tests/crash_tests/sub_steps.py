"""The steps that the runtime's work consists of, each of which must be crashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from powercut.fuzz.coverage import Coverage, SubStep
from system.storage.framing import Framing

Piece: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Its name, its operation, and functions that are all among its callers."""

DIRECTORY: Final = "Sync directory"
ATOMIC_WRITE: Final[Sequence[Piece]] = (
    ("create the temporary file", "Create", ("write_atomic", "_create_temporary")),
    ("write it", "Write", ("write_atomic", "write_all")),
    ("fsync it", "Sync", ("write_atomic", "replace_file")),
    ("rename it", "Rename", ("write_atomic", "replace_file")),
    ("fsync of its directory", DIRECTORY, ("write_atomic",)),
)


def within(whole: str, pieces: Sequence[Piece], *callers: str) -> Sequence[Piece]:
    """Return these pieces as parts of ``whole``, done on behalf of ``callers`` as well."""
    return [(f"{whole}: {name}", kind, (*inner, *callers)) for name, kind, inner in pieces]


LOG: Final[Mapping[Framing, Sequence[Piece]]] = {
    Framing.FRAMED: (
        ("append the lines", "Write", ("LogFile.write", "LogFile.append")),
        ("barrier", "Sync", ("LogFile.write", "LogFile.commit")),
        ("append unsynced", "Write", ("LogFile.append_unsynced", "LogFile.append")),
        ("barrier before it is parked", "Sync", ("LogFile.park", "LogFile.commit")),
    ),
    Framing.PENDING: (
        ("create the entry", "Create", ("PendingWriter._announce",)),
        ("write the entry", "Write", ("PendingWriter._announce",)),
        ("fsync of the entry", "Sync", ("PendingWriter._announce",)),
        ("fsync of its directory", DIRECTORY, ("PendingWriter._announce",)),
        ("append the lines", "Write", ("PendingWriter.write", "LogFile.append")),
        ("barrier", "Sync", ("PendingWriter.write", "LogFile.commit")),
        ("remove the entry", "Unlink", ("PendingWriter._remove",)),
        ("append unsynced", "Write", ("PendingWriter.append_unsynced", "LogFile.append")),
        ("barrier before it is parked", "Sync", ("PendingWriter.park", "LogFile.commit")),
    ),
}
CREATION: Final[Sequence[Piece]] = (
    ("make the session's directory", "Create directory", ("SessionStore.add",)),
    ("fsync of the directory of all", DIRECTORY, ("SessionStore.add",)),
    *within("record", ATOMIC_WRITE, "SessionStore.add"),
    ("create the log", "Create", ("_open_log", "ExaminedLog.read")),
    ("fsync of the log", "Sync", ("_open_log", "_make_whole")),
    ("fsync of the log's directory", DIRECTORY, ("_open_log", "_make_whole")),
    ("write the first lines", "Write", ("AgentLog._create", "append_all", "LogFile.append")),
    ("barrier on the first lines", "Sync", ("AgentLog._create", "LogFile.commit")),
)
LINE: Final[Sequence[Piece]] = (
    ("write the line", "Write", ("EventLog.append_all", "LogFile.append")),
    ("barrier", "Sync", ("EventLog.append_all", "LogFile.commit")),
)
RECORD: Final = within("record", ATOMIC_WRITE)
EVICTION: Final[Sequence[Piece]] = (
    ("log it", "Write", ("Pool._evict", "EventLog.append_unsynced")),
    ("barrier on the unsynced lines", "Sync", ("EventLog.park",)),
)


def of(action: str, pieces: Sequence[Piece], *callers: str) -> list[SubStep]:
    """Return these pieces as the steps of ``action``, done on behalf of ``callers`` as well."""
    return [SubStep(*piece) for piece in within(action, pieces, *callers)]


def must_be_tried(steps: Sequence[SubStep], coverage: Coverage) -> None:
    """Fail with the names of all crashes that are missing."""
    gaps = [gap for step in steps for gap in step.untried(coverage)]
    assert not gaps, "\n".join(gaps)


WORK: Final[Mapping[str, Sequence[SubStep]]] = {
    "atomic write": of("atomic write", ATOMIC_WRITE),
    "create": of("create", CREATION, "RootCreation._new_root"),
    "spawn": of("spawn", CREATION, "Dispatcher._write"),
    "send": of("send", LINE, "Runtime.send"),
    "turn": [
        SubStep("turn: log its start", "Write", ("Turns._turn", "AgentLog.begin_turn")),
        *of("turn", LINE, "Turns._commit"),
        SubStep("turn: log the deliveries", "Write", ("Turns._commit", "EventLog.append_unsynced")),
        *of("turn, its outbox", LINE, "Turns.take", "Dispatcher.dispatch_turn"),
    ],
    "terminate": [
        *of("terminate", LINE, "Runtime.terminate"),
        *of("terminate", RECORD, "Runtime.terminate", "Dispatcher.retire"),
        *of("complete", RECORD, "Turns.take", "Dispatcher.retire"),
    ],
    "evict": [
        *of("evict", RECORD, "Pool._has_room", "Pool._evict"),
        *of("evict", EVICTION, "Pool._has_room"),
    ],
}

PASSES: Final[Mapping[str, Sequence[Piece]]] = {
    "lock_root": (
        ("sweep the root", "Unlink", ("sweep_temporaries",)),
        ("fsync of the root", DIRECTORY, ("Root.open",)),
        ("write the epoch", "Write", ("_next_epoch",)),
        ("fsync of the epoch", "Sync", ("_next_epoch",)),
    ),
    "sweep_sessions": (
        ("fsync of the directory of all", DIRECTORY, ("SessionStore.sweep",)),
        ("remove a temporary file", "Unlink", ("SessionStore.sweep",)),
        ("remove an empty directory", "Unlink directory", ("SessionStore.sweep",)),
    ),
    "open_logs": (
        *within("put damage aside", ATOMIC_WRITE, "put_aside"),
        *within("rewrite a log", ATOMIC_WRITE, "_rewrite"),
        ("write the end of a log again", "Write", ("_make_whole",)),
        ("cut a log", "Resize", ("_make_whole",)),
        ("fsync of a log", "Sync", ("_make_whole",)),
        ("fsync of a log's directory", DIRECTORY, ("_make_whole",)),
        ("remove a pending entry", "Unlink", ("_dismiss",)),
        ("fsync of its directory", DIRECTORY, ("_dismiss",)),
        ("fsync of the log of the recording", "Sync", ("make_log_durable",)),
        ("fsync of its directory", DIRECTORY, ("make_log_durable",)),
    ),
    "apply_logs": (
        ("move a damaged record aside", "Rename", ("examine", "move_aside")),
        ("fsync of where it was", DIRECTORY, ("examine", "move_aside")),
    ),
    "place_agents": (
        ("remove a file of an orphan", "Unlink", ("SessionStore.remove",)),
        ("remove its directory", "Unlink directory", ("SessionStore.remove",)),
        ("fsync of the directory of all", DIRECTORY, ("SessionStore.remove",)),
    ),
    "dispatch_outboxes": (
        *within("a creation", CREATION),
        *within("the outbox", LINE, "AgentLog.write_queue"),
        *within("a missing", RECORD, "_write_record"),
        *within("an end", LINE, "_repair", "AgentLog.commit"),
        *within("an end", RECORD, "retire"),
        ("rename a pack of records", "Rename", ("complete_records", "PackFolder.write")),
        ("fsync of its directory", DIRECTORY, ("complete_records", "FileExecutionStore.sync")),
        *within("the checkpoint", ATOMIC_WRITE, "complete_records", "write_checkpoint"),
        ("remove a segment", "Unlink", ("complete_records", "WriteAheadLog.remove_before")),
    ),
    "apply_outboxes": (),
    "suspend_sessions": RECORD,
    "notify_agents": LINE,
    "publish_report": (),
}
"""By the name of the pass; those without a piece change nothing on the disk."""
