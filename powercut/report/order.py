"""The order of changes: two calls between which a kill does harm, which no fsync prevents."""

from __future__ import annotations

from faults.crash_point import Phase
from powercut.explorer.crash_state import done_at, killed_along
from powercut.explorer.event import between, events_of
from powercut.explorer.verdicts import Exploration, Failure


def remedy_of_order(found: Exploration, failure: Failure) -> str:
    """Return the remedy for the call right before a kill, and the one that ends its harm.

    It is empty if these calls are not known: for any other failure, for a sample, and for harm
    that goes on to the end.
    """
    point, history = failure.crashes[0], found.workload.history
    is_between = not failure.needs_power_cut and point.phase is Phase.AFTER
    if not is_between or not found.exhaustive or found.is_lazy:
        return ""
    killed = {each.state for each in found.failures if not each.needs_power_cut}
    count, done = len(found.workload.journal), done_at(point)
    keys = killed_along(found.workload.journal, found.model, range(count + 1))

    def fails(number: int) -> bool:
        entries = {history.entries_by(number, returned=each) for each in (False, True)}
        return any((each, keys[number]) in killed for each in entries)

    last = next((number for number in range(done + 1, count + 1) if not fails(number)), None)
    if last is None:
        return ""
    events = {each.number: each for each in events_of(found.workload) if each.operation is not None}
    return (
        f"a kill {between(events[done], events[last])} does harm: make the second change first, "
        "or let the next start complete or undo the first"
    )
