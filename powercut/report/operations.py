"""The operations of a recorded workload as lines, with the acknowledgements between them."""

from __future__ import annotations

from collections.abc import Iterator

from powercut.explorer.event import events_of
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.one_line import one_line
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    FailedSync,
    Operation,
    Resize,
    Sync,
    Write,
)


def operation_lines(workload: RecordedWorkload) -> Iterator[str]:
    """Yield a line for each operation, which begins with its number, and for each acknowledgement.

    Ranges are in bytes, from the first one up to, not including, the last one, as in findings.
    """
    width = len(str(len(workload.journal)))
    for event in events_of(workload):
        if event.operation is None:
            yield f"{'':{width}}  {event}"
        else:
            detail = _detail(event.operation, event.number in workload.mapped)
            path = one_line(event.path) or "everything"
            yield f"{event.number:{width}}  {event.kind} of {path}{detail}"


def _detail(operation: Operation, is_mapped: bool) -> str:
    match operation:
        case Write(offset=offset, data=data):
            stores = ", stores to mapped memory" if is_mapped else ""
            return f", bytes {offset} to {offset + len(data)}{stores}"
        case Resize(size=size) | Allocate(end=size):
            return f" to {size} bytes"
        case Create(link_text=text) if text:
            return f" to {one_line(text)}"
        case Sync() | FailedSync():
            data_only = ", data only" if operation.data_only else ""
            pages = f", pages of bytes {operation.start} to {operation.end}"
            return data_only + (pages if operation.end else "")
        case DropPages(start=start, end=end):
            return f", bytes {start} to {end or 'the end'}"
        case _:
            return ""
