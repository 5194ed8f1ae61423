"""The lifetimes before a power cut of a run, as one recorded workload.

A kill leaves the page cache and everything unsynced, so lifetimes that follow each other by
kills have one journal. It begins where everything was durable.
"""

from __future__ import annotations

from oracles.history import History, HistoryEntry
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuzz.lifetime_recorder import LifetimeRecorder
from powercut.place import Place
from sim.disk.crash.journal import Journal


def workload_before(recorder: LifetimeRecorder, power_cut: int) -> RecordedWorkload:
    """Return the workload that power cut number ``power_cut`` of a run, from 1, ends.

    The return of an action or a recovery acknowledges it.
    """
    last, _ = recorder.power_cuts[power_cut - 1]
    numbers = recorder.since_power_cut(last)
    journal = Journal(recorder.boots[numbers[0]].disk.image)
    places: dict[int, Place] = {}
    for number in numbers:
        lifetime = recorder.boots[number]
        before = len(journal)
        journal.operations += lifetime.disk.journal
        places |= {before + each: place for each, place in lifetime.places.items()}
    entries = [
        HistoryEntry(recorder.before(call.lifetime) + call.end, True, call.text, call.place)
        for call in recorder.calls
        if call.lifetime in numbers and call.end is not None
    ]
    return RecordedWorkload(journal, History(lambda: len(journal), entries=entries), places)
