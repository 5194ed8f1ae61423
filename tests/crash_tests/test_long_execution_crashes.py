"""A long execution, crashed at every operation: spooled, streamed into the log, and packed.

Its events and the pieces of its response go to a spool, from there to several entries of the
log, and by a checkpoint into a pack or, while it is running, into a snapshot.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from crash_tests.workloads.lifetime import Lifetime
from crash_tests.workloads.observations import Observer, replay_observations
from oracles.history import History, Known
from oracles.recording.shadow_execution import LogRecord
from oracles.recording.shadow_recording import ShadowRecording
from oracles.violation import FalseAlarm
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.two_phases import TwoPhases
from powercut.explorer.verdicts import Exploration
from sim.disk.cache.operation import Operation, Unlink, Write
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from system.recording.open_recording import open_recording
from tests.crash_tests.recorded_root import SEGMENT_BYTES, Recorders
from tests.crash_tests.recording_recovery import Recovered, recover

ENTRY_BYTES = 400
PIECES = ("a long answer " * 25,) * 2
SAMPLED = Limits(states_per_point=4, samples=2, engine=Engine.BRUTE)
MANY = Limits(states_per_point=256, samples=32, engine=Engine.BRUTE)
LAZY = Limits(engine=Engine.LAZY)
WEAK_MODELS = ("ext4-writeback", "posix")
"""The models with too many states for the lazy engine, or for five minutes."""


class ObservedShadow(ShadowRecording):
    """A shadow whose calls are replayed on that of a check."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def begin_start(self, *values: Any) -> None:
        super().begin_start(*values)
        self._observer.attempt(lambda shadow: shadow.begin_start(*values))

    def started(self, execution_id: str, *, sampled: bool = True) -> None:
        super().started(execution_id, sampled=sampled)
        self._observer.attempt(lambda shadow: shadow.started(execution_id))

    def begin(self, *values: Any) -> LogRecord:
        self._observer.attempt(lambda shadow: shadow.begin(*values))
        return super().begin(*values)

    def end(self, *values: Any) -> LogRecord:
        self._observer.attempt(lambda shadow: shadow.end(*values))
        return super().end(*values)

    def written(self, log_record: LogRecord) -> None:
        super().written(log_record)
        (execution_id,) = [
            each for each, found in self.executions.items() if log_record in found.log_records
        ]
        self._observer.attempt(
            lambda shadow: shadow.written(shadow.executions[execution_id].log_records[-1])
        )

    def barrier(self, *values: Any, **named: Any) -> None:
        super().barrier(*values, **named)
        self._observer.acknowledge(lambda shadow: shadow.barrier(*values, **named))


def record_long(process: Process, ack: History) -> None:
    """Record a long execution, and checkpoints before and after its end."""
    observer = Observer(ack)
    short = [
        patch(f"system.recording.wal.{each}.PIECE_BYTES", ENTRY_BYTES)
        for each in ("log", "segment")
    ]
    with short[0], short[1], Lifetime(process) as (host, loop):
        opened = open_recording(host, segment_bytes=SEGMENT_BYTES, most_bytes=ENTRY_BYTES)
        recording, _ = loop.run_until_complete(opened)
        recorders = Recorders(host, loop, recording)
        recorders.shadow = ObservedShadow(observer)
        recorders.start("streamed", 7)
        recorders.start("other", 2)
        recorders.checkpoint()
        # With more unsynced pieces of the spool, crash points would be passed over.
        process.sync()
        recorders.finalize("streamed", PIECES)
        recorders.append("other", 1)
        recorders.checkpoint()
    observer.end()


def judge(found: Recovered, known: Known) -> None:
    if found.reported or found.aside:
        raise FalseAlarm("recovery reports damage that no crash can do", found=found)
    shadow = ShadowRecording()
    replay_observations(known, shadow)
    shadow.settle(found.records, kept=False)


def explored(model: str, limits: Limits) -> Exploration:
    return explore(record_long, TwoPhases(recover, judge), model, limits)


def operations(found: Exploration, ending: str) -> list[type[Operation]]:
    journal = found.workload.journal
    return [type(each) for each in journal if ending in each.path]


def test_every_crash_of_a_long_execution_loses_nothing_durable() -> None:
    found = explored("posix", SAMPLED)
    assert found.safe, found.failures[0].violation
    assert operations(found, "spool.tmp.").count(Write) > 2
    assert Unlink in operations(found, "spool.tmp.")
    assert operations(found, "records")
    assert operations(found, "snapshots/0")


@pytest.mark.stress
@pytest.mark.parametrize("model", [model for model in MODELS if model not in WEAK_MODELS])
def test_every_crash_of_a_long_execution_under_the_other_models(model: str) -> None:
    found = explored(model, LAZY)
    assert found.safe, found.failures[0].violation
    assert found.how.startswith("exhaustive")


@pytest.mark.stress
@pytest.mark.parametrize("model", WEAK_MODELS)
def test_many_crashes_of_a_long_execution_under_a_weak_model(model: str) -> None:
    found = explored(model, MANY)
    assert found.safe, found.failures[0].violation
