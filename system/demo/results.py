"""Which jobs are done: USER has acknowledged a result. What the demo knows of its own past.

A view shows only what USER has not acknowledged yet, and the operator keeps nothing. The log
of USER keeps both, the result and that it was heard.
"""

from __future__ import annotations

from collections.abc import Iterable

from system.agents import event
from system.agents.orchestrator import USER_LOG, USER_SESSION
from system.demo.jobs import job_of
from system.ports import FileSystem
from system.recovery.recovery_text import spans_text
from system.storage.atomic_file import read_whole
from system.storage.line import Line
from system.storage.log_scan import scan


def heard_jobs(files: FileSystem) -> set[int]:
    """Return the numbers of the jobs whose results USER has acknowledged, in any lifetime.

    The log was recovered and nobody writes it. Raises ``OSError`` when it cannot be read.
    """
    return _heard(scan(read_whole(files, USER_LOG), USER_SESSION, USER_LOG).lines)


def _heard(lines: Iterable[Line]) -> set[int]:
    told: dict[object, int] = {}
    heard = set()
    for line in lines:
        if line.event == event.MESSAGE_ENQUEUED:
            if (number := job_of(line.data["payload"])) is not None:
                told[line.data["message_id"]] = number
        elif line.event == event.MESSAGE_DELIVERED and line.data["message_id"] in told:
            heard.add(told[line.data["message_id"]])
    return heard


def spans(numbers: Iterable[int]) -> str:
    """Return ascending numbers in words: ``1, 4 to 6``."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return spans_text(found)
