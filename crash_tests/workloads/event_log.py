"""The event log in both framings: append, crash, recover, crash the recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.rig.process_host import host_of
from crash_tests.workloads.workload import Run, Workload
from oracles.history import History, Known
from oracles.shadow_log import ShadowLog
from oracles.violation import LostAck
from powercut.explorer.limits import Limits
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from system.ports import JsonObject
from system.storage.event_log import EventLog
from system.storage.framing import Framing

_SESSION: Final = "5e551011c0ffee00decaf000000000ff"
_PATH: Final = f"agents/{_SESSION}/events.jsonl"
_EVENT: Final = "message.enqueued"
_TEXTS: Final = ("Anna", "two\nlines", "Bertram")
_UNSYNCED: Final = ("unsynced", "behind it")
_GROUP: Final = ("Clara", "Dora", "Emil")


def _events(texts: Sequence[str]) -> list[tuple[str, JsonObject]]:
    return [(_EVENT, {"text": text}) for text in texts]


def _append(framing: Framing) -> Run:
    def append(process: Process, ack: History) -> None:
        log = EventLog.open(host_of(process), _PATH, _SESSION, framing)
        for text in _TEXTS:
            ack.attempt(text)
            log.append(_EVENT, {"text": text})
            ack(text)
        log.close()

    return append


def _append_group(framing: Framing) -> Run:
    def append_group(process: Process, ack: History) -> None:
        log = EventLog.open(host_of(process), _PATH, _SESSION, framing)
        for texts, write in ((_UNSYNCED, log.append_unsynced), (_GROUP, log.append_all)):
            for text in texts:
                ack.attempt(text)
            write(_events(texts))
        for text in _UNSYNCED + _GROUP:
            ack(text)
        log.close()

    return append_group


def _segments(process: Process, ack: History) -> None:
    """Append a line, an unsynced one and a snapshot, then a line in the new segment."""
    log = EventLog.open(host_of(process), _PATH, _SESSION)
    for text in _GROUP:
        ack.attempt(text)
    log.append_all(_events(_GROUP[:1]))
    ack(_GROUP[0])
    log.append_unsynced(_events(_GROUP[1:2]))
    log.begin_segment({"text": "snapshot"})
    ack(_GROUP[1])
    log.append_all(_events(_GROUP[2:]))
    ack(_GROUP[2])
    log.close()


def _recover_segments(process: Process) -> list[object]:
    log = EventLog.open(host_of(process), _PATH, _SESSION)
    lines = [*log.earlier_lines(), *log.lines()]
    numbers = [line.seq for line in lines]
    if numbers != list(range(1, len(lines) + 1)) or log.report.has_fallen_back:
        raise LostAck("a segment is not whole", numbers=numbers, report=log.report)
    return [line.data["text"] for line in lines if line.event == _EVENT]


def _check(framing: Framing) -> TwoPhases[list[object]]:
    def recover(process: Process) -> list[object]:
        log = EventLog.open(host_of(process), _PATH, _SESSION, framing)
        return [line.data["text"] for line in log.lines()]

    return TwoPhases(recover, _judge)


def _judge(texts: list[object], known: Known) -> None:
    shadow: ShadowLog[object] = ShadowLog()
    shadow.begin(*known.acknowledged)
    shadow.acknowledge()
    shadow.begin(*known.in_flight)
    shadow.settle(texts)


def _appends(framing: Framing) -> Workload:
    return Workload(
        f"append to the event log with framing {framing.value}, recover, crash the recovery",
        _append(framing),
        _check(framing),
        limits=Limits(nested=1),
    )


def _group(framing: Framing) -> Workload:
    # Each unsynced line multiplies the states; with a crash of the recovery as well they
    # would be millions. The targets of the event log cover those.
    return Workload(
        f"append two unsynced lines, then three behind one barrier, framing {framing.value}",
        _append_group(framing),
        _check(framing),
    )


framed = _appends(Framing.FRAMED)
pending = _appends(Framing.PENDING)
group_framed = _group(Framing.FRAMED)
group_pending = _group(Framing.PENDING)
segments = Workload(
    "begin a new segment of the event log with a snapshot, then recover",
    _segments,
    TwoPhases(_recover_segments, _judge),
)
