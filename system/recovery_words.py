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
        ("promised lines that were still owed", report.redone),
        ("of them refused by the disk so far", report.unkept),
        ("conversations that had been open, suspended", len(report.suspended)),
        ("turns that were under way, to be run again", sum(map(len, report.lost_turns.values()))),
        ("agents whose end was finished", len(report.ended)),
        ("lines of events that this version does not know", report.unknown_lines),
        ("bytes of unfinished lines, cut off", report.torn_bytes),
        ("sessions that never became agents, removed", len(report.orphans)),
        ("temporary files, removed", len(report.swept)),
    )
    for words, count in counted:
        if count:
            yield f"  {words}: {count}"
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
    for agent_id in report.vanished:
        yield f"  agent {agent_id}: it has said something, and nothing of its session is left"
    for leak in report.leaks:
        yield f"  a conversation is kept that no session knows: {leak}"


def _spans(gaps: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in gaps)
