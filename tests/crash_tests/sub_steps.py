"""What a reader takes the runtime's work to consist of: the steps that H-10 wants crashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from powercut.fuzz.coverage import Coverage, SubStep
from system.storage.framing import Framing

Piece: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Its name, its operation, and functions among the callers."""

DIRECTORY: Final = "Sync directory"
ATOMIC_WRITE: Final[Sequence[Piece]] = (
    ("create the temporary file", "Create", ("write_atomic", "_create_temporary")),
    ("write it", "Write", ("write_atomic", "write_all")),
    ("fsync it", "Sync", ("write_atomic", "_replace")),
    ("rename it", "Rename", ("write_atomic", "_replace")),
    ("fsync of its directory", DIRECTORY, ("write_atomic",)),
)
LOG: Final[Mapping[Framing, Sequence[Piece]]] = {
    Framing.FRAMED: (
        ("append the lines", "Write", ("FramedWriter.write", "LogFile.append")),
        ("barrier", "Sync", ("FramedWriter.write", "LogFile.commit")),
        ("note", "Write", ("FramedWriter.note", "LogFile.append")),
        ("barrier before it rests", "Sync", ("FramedWriter.rest", "LogFile.commit")),
    ),
    Framing.PENDING: (
        ("create the entry", "Create", ("PendingWriter._announce",)),
        ("write the entry", "Write", ("PendingWriter._announce",)),
        ("fsync of the entry", "Sync", ("PendingWriter._announce",)),
        ("fsync of its directory", DIRECTORY, ("PendingWriter._announce",)),
        ("append the lines", "Write", ("PendingWriter.write", "LogFile.append")),
        ("barrier", "Sync", ("PendingWriter.write", "LogFile.commit")),
        ("remove the entry", "Unlink", ("PendingWriter._remove",)),
        ("note", "Write", ("PendingWriter.note", "LogFile.append")),
        ("barrier before it rests", "Sync", ("PendingWriter.rest", "LogFile.commit")),
    ),
}
BIRTH: Final[Sequence[Piece]] = (
    ("make the session's directory", "Create directory", ("SessionStore.add",)),
    ("fsync of the directory of all", DIRECTORY, ("SessionStore.add",)),
    *((f"record: {name}", kind, ("SessionStore.add", *who)) for name, kind, who in ATOMIC_WRITE),
    ("create the log", "Create", ("_open_log", "ExaminedLog.read")),
    ("cut the log", "Resize", ("_open_log", "_make_whole")),
    ("fsync of the log", "Sync", ("_open_log", "_make_whole")),
    ("fsync of the log's directory", DIRECTORY, ("_open_log", "_make_whole")),
    ("write the first lines", "Write", ("_be_born", "append_all", "LogFile.append")),
    ("barrier on the first lines", "Sync", ("_be_born", "LogFile.commit")),
)
LINE: Final[Sequence[Piece]] = (
    ("write the line", "Write", ("EventLog.append_all", "LogFile.append")),
    ("barrier", "Sync", ("EventLog.append_all", "LogFile.commit")),
)
RECORD: Final = tuple((f"record: {name}", kind, who) for name, kind, who in ATOMIC_WRITE)


def of(whom: str, pieces: Sequence[Piece], *callers: str) -> list[SubStep]:
    """Return these pieces where they are done for these callers."""
    return [SubStep(f"{whom}: {name}", kind, (*who, *callers)) for name, kind, who in pieces]


def must_be_tried(steps: Sequence[SubStep], coverage: Coverage) -> None:
    """Fail with the names of all crashes that are missing."""
    gaps = [gap for step in steps for gap in step.untried(coverage)]
    assert not gaps, "\n".join(gaps)


WORK: Final[Mapping[str, Sequence[SubStep]]] = {
    "atomic write": of("atomic write", ATOMIC_WRITE),
    "create": of("create", BIRTH, "Runtime._created"),
    "spawn": of("spawn", BIRTH, "Orchestrator._told"),
    "send": of("send", LINE, "Runtime.send"),
    "turn": [
        SubStep("turn: note its start", "Write", ("Turns._turn", "Agent.note")),
        *of("turn", LINE, "Turns._commit"),
        SubStep("turn: note what was delivered", "Write", ("Turns._commit", "EventLog.note")),
        *of("turn, what it promises", LINE, "Turns.take", "Orchestrator.keep"),
    ],
    "terminate": [
        *of("terminate", LINE, "Runtime.terminate"),
        *of("terminate", RECORD, "Runtime.terminate", "Orchestrator.retire"),
        *of("complete", RECORD, "Turns.take", "Orchestrator.retire"),
    ],
    "evict": [
        *of("evict", RECORD, "Pool._has_room", "Pool._evict"),
        SubStep("evict: note it", "Write", ("Pool._has_room", "Pool._evict", "EventLog.note")),
        SubStep("evict: barrier on the notes", "Sync", ("Pool._has_room", "EventLog.rest")),
    ],
}

PASSES: Final[Mapping[str, Sequence[Piece]]] = {
    "lock": (
        ("sweep the root", "Unlink", ("sweep_temporaries",)),
        ("fsync of the root", DIRECTORY, ("Root.open",)),
        ("write the epoch", "Write", ("_next_epoch",)),
        ("fsync of the epoch", "Sync", ("_next_epoch",)),
    ),
    "sweep": (
        ("fsync of the directory of all", DIRECTORY, ("SessionStore.tidy",)),
        ("remove a temporary file", "Unlink", ("SessionStore.tidy",)),
        ("remove an empty directory", "Unlink directory", ("SessionStore.tidy",)),
    ),
    "open_logs": (
        *((f"put damage aside: {n}", kind, ("put_aside", *who)) for n, kind, who in ATOMIC_WRITE),
        *((f"rewrite a log: {n}", kind, ("_rewrite", *who)) for n, kind, who in ATOMIC_WRITE),
        ("write the end of a log again", "Write", ("_make_whole",)),
        ("cut a log", "Resize", ("_make_whole",)),
        ("fsync of a log", "Sync", ("_make_whole",)),
        ("fsync of a log's directory", DIRECTORY, ("_make_whole",)),
        ("remove a pending entry", "Unlink", ("_dismiss",)),
        ("fsync of its directory", DIRECTORY, ("_dismiss",)),
        ("move a pending entry aside", "Rename", ("_dismiss", "move_aside")),
        ("fsync of where it was", DIRECTORY, ("_dismiss", "move_aside")),
    ),
    "fold": (
        ("move a damaged record aside", "Rename", ("examine", "move_aside")),
        ("fsync of where it was", DIRECTORY, ("examine", "move_aside")),
    ),
    "place": (
        ("remove a file of an orphan", "Unlink", ("SessionStore.remove",)),
        ("remove its directory", "Unlink directory", ("SessionStore.remove",)),
        ("fsync of the directory of all", DIRECTORY, ("SessionStore.remove",)),
    ),
    "redo": (
        *((f"a birth: {name}", kind, who) for name, kind, who in BIRTH),
        *((f"what is owed: {name}", kind, ("Agent.tell", *who)) for name, kind, who in LINE),
        *((f"a missing {name}", kind, ("_write_record", *who)) for name, kind, who in RECORD),
        *((f"an end: {name}", kind, ("_repair", "Agent.commit", *who)) for name, kind, who in LINE),
        *((f"an end: {name}", kind, ("retire", *who)) for name, kind, who in RECORD),
    ),
    "reclaim": (),
    "suspend": RECORD,
    "notify": LINE,
    "publish": (),
}
"""By the name of the pass; those without a piece change nothing on the disk."""
