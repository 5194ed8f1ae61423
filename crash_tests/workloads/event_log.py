"""The event log in both framings: append and note, crash, recover, crash the recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.workloads.host import host_of
from crash_tests.workloads.workload import Scenario
from oracles.history import History, Known
from oracles.shadow_log import ShadowLog
from powercut.explorer.explore import Check, Workload
from powercut.explorer.limits import Limits
from sim.disk.calls.process import Process
from system.ports import JsonObject
from system.storage.event_log import EventLog
from system.storage.framing import Framing

_SESSION: Final = "5e551011c0ffee00decaf000000000ff"
_PATH: Final = f"agents/{_SESSION}/events.jsonl"
_EVENT: Final = "message.enqueued"
_TEXTS: Final = ("Anna", "two\nlines", "Bertram")
_NOTED: Final = ("unsynced", "behind it")
_GROUP: Final = ("Clara", "Dora", "Emil")


def _events(texts: Sequence[str]) -> list[tuple[str, JsonObject]]:
    return [(_EVENT, {"text": text}) for text in texts]


def _appending(framing: Framing) -> Workload:
    def workload(disk: Process, ack: History) -> None:
        log = EventLog.open(host_of(disk), _PATH, _SESSION, framing)
        for text in _TEXTS:
            ack.attempt(text)
            log.append(_EVENT, {"text": text})
            ack(text)
        log.close()

    return workload


def _noting(framing: Framing) -> Workload:
    def workload(disk: Process, ack: History) -> None:
        log = EventLog.open(host_of(disk), _PATH, _SESSION, framing)
        for texts, write in ((_NOTED, log.append_unsynced), (_GROUP, log.append_all)):
            for text in texts:
                ack.attempt(text)
            write(_events(texts))
        for text in _NOTED + _GROUP:
            ack(text)
        log.close()

    return workload


def _recovering(framing: Framing) -> Check:
    def check(disk: Process, known: Known) -> None:
        shadow: ShadowLog[object] = ShadowLog()
        shadow.begin(*known.acknowledged)
        shadow.acknowledge()
        shadow.begin(*known.in_flight)
        log = EventLog.open(host_of(disk), _PATH, _SESSION, framing)
        shadow.settle([line.data["text"] for line in log.lines()])

    return check


def _append_scenario(framing: Framing) -> Scenario:
    return Scenario(
        f"event-log-{framing.value}",
        f"append to the event log with framing {framing.value}, recover, crash the recovery",
        _appending(framing),
        _recovering(framing),
        limits=Limits(nested=1),
    )


def _group_scenario(framing: Framing) -> Scenario:
    # Each line that waits for the barrier multiplies the states; with a crash of the
    # recovery on top they would be millions. The machines have that.
    return Scenario(
        f"event-log-group-{framing.value}",
        f"note two lines, append three behind one barrier, framing {framing.value}, recover",
        _noting(framing),
        _recovering(framing),
    )


framed = _append_scenario(Framing.FRAMED)
pending = _append_scenario(Framing.PENDING)
group_framed = _group_scenario(Framing.FRAMED)
group_pending = _group_scenario(Framing.PENDING)
SCENARIOS: Sequence[Scenario] = (framed, pending, group_framed, group_pending)
