"""The finished jobs: those whose result USER has acknowledged.

A view shows only messages that USER has not acknowledged yet. The log of USER holds both the
results and their acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterable

from system.agents import event
from system.agents.message import USER_SESSION
from system.agents.orchestrator import USER_LOG
from system.demo.jobs import job_of
from system.ports import FileSystem
from system.storage.line import Line
from system.storage.log_report import spans_text
from system.storage.segments import read_lines


def acknowledged_jobs(files: FileSystem) -> set[int]:
    """Return the numbers of the jobs whose results USER has acknowledged in any run.

    The log must have been recovered and not be written to. Raises ``OSError``.
    """
    return _acknowledged(read_lines(files, USER_LOG, USER_SESSION))


def _acknowledged(lines: Iterable[Line]) -> set[int]:
    results: dict[object, int] = {}
    acknowledged = set()
    for line in lines:
        if line.event == event.MESSAGE_ENQUEUED:
            if (number := job_of(line.data["payload"])) is not None:
                results[line.data["message_id"]] = number
        elif line.event == event.MESSAGE_DELIVERED and line.data["message_id"] in results:
            acknowledged.add(results[line.data["message_id"]])
    return acknowledged


def spans(numbers: Iterable[int]) -> str:
    """Format ascending numbers as spans: ``1, 4 to 6``."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return spans_text(found)
