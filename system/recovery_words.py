"""A recovery report in words: one line for what there is, one for each thing that was put right."""

from __future__ import annotations

from collections.abc import Iterator

from system.agents.recovery_report import RecoveryReport


def recovery_in_words(report: RecoveryReport) -> Iterator[str]:
    """Yield the lines; the first begins with ``recovered``, the others are indented."""
    yield (
        f"recovered epoch={report.epoch} sessions={report.sessions} living={report.living} "
        f"lines={report.lines}"
    )
    counted = (
        (report.redone, "promised lines were still owed, and were written"),
        (report.unkept, "of them the disk has refused so far"),
        (len(report.suspended), "conversations had been open, and were suspended"),
        (sum(map(len, report.lost_turns.values())), "turns were under way, and run again"),
        (len(report.ended), "agents were at their end, and have ended"),
        (report.torn_bytes, "bytes of unfinished lines were cut off"),
        (len(report.orphans), "sessions had never become agents, and were removed"),
        (len(report.swept), "temporary files were removed"),
    )
    for count, words in counted:
        if count:
            yield f"  {count} {words}"
    for damage in report.damaged:
        yield (
            f"  {damage.path}: {damage.size_bytes} damaged bytes at offset {damage.offset} "
            f"were put aside in {damage.quarantine}: {damage.reason}"
        )
    for session_id, gaps in sorted(report.missing.items()):
        yield f"  session {session_id}: lines are missing: {_spans(gaps)}"
    for told in report.problems:
        yield f"  session {told.session_id}: {told.problem.value} ({told.detail})"
    for session_id in report.detached:
        yield f"  session {session_id}: its parent cannot be found; it counts as a root"
    for leak in report.leaks:
        yield f"  a conversation is kept that no session knows: {leak}"


def _spans(gaps: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in gaps)
