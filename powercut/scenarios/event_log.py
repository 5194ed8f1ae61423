"""The event log in both framings: append, crash, recover, crash the recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from oracles.history import History, Known
from oracles.shadow_log import ShadowLog
from powercut.explore import Check, Workload
from powercut.scenarios.host import host_of
from powercut.scenarios.scenario import Scenario
from sim.disk.handle import Handle
from system.storage.event_log import EventLog
from system.storage.framing import Framing

_SESSION: Final = "5e551011c0ffee00decaf000000000ff"
_PATH: Final = f"agents/{_SESSION}/events.jsonl"
_TEXTS: Final = ("Anna", "two\nlines", "Bertram")


def _appending(framing: Framing) -> Workload:
    def workload(disk: Handle, ack: History) -> None:
        log = EventLog.open(host_of(disk), _PATH, _SESSION, framing)
        for text in _TEXTS:
            ack.attempt(text)
            log.append("message.enqueued", {"text": text})
            ack(text)
        log.close()

    return workload


def _recovering(framing: Framing) -> Check:
    def check(disk: Handle, known: Known) -> None:
        shadow: ShadowLog[object] = ShadowLog()
        for entry in known.acknowledged:
            shadow.begin(entry)
            shadow.acknowledge()
        for entry in known.in_flight:
            shadow.begin(entry)
        log = EventLog.open(host_of(disk), _PATH, _SESSION, framing)
        shadow.settle([line.data["text"] for line in log.lines()])

    return check


def _scenario(framing: Framing) -> Scenario:
    return Scenario(
        f"event-log-{framing.value}",
        f"append to the event log with framing {framing.value}, recover, crash the recovery",
        _appending(framing),
        _recovering(framing),
        nested=1,
    )


SCENARIOS: Sequence[Scenario] = tuple(_scenario(framing) for framing in Framing)
