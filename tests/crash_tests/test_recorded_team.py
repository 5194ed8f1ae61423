"""The recovery of a runtime with a log to complete, crashed at every operation, and again.

A committed turn has a record without a response, another turn was interrupted
(``recorded_team.py``). Each recovery must leave the record of every committed turn, of no other
as complete, and the same records as a recovery that was not crashed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import pytest

from crash_tests.targets.false_alarms import check_report
from crash_tests.targets.recording_reads import check_incomplete, check_record_files, read_store
from crash_tests.workloads.lifetime import Lifetime
from oracles.history import History, Known
from oracles.recording.record_reader import ObservedRecord
from oracles.recording.turn_records import check_turn_records
from oracles.violation import FalseAlarm, NotIdempotent
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.two_phases import TwoPhases
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from system.agents.view import RuntimeView
from system.ports import Provider
from system.providers.scripted import ScriptedProvider
from system.runtime import Runtime
from tests.crash_tests.recorded_team import OPTIONS, RecordedTeam, recorded_team
from tests.unit.system.agents.fake_provider import FakeProvider

LAZY = Limits(engine=Engine.LAZY)
NESTED = Limits(nested=1, engine=Engine.LAZY)
MANY = Limits(states_per_point=128, samples=16, engine=Engine.BRUTE)
SAMPLED = Limits(states_per_point=2, samples=1, engine=Engine.BRUTE)
NESTED_MODELS = ("scc", "ext4-journal", "ext4-ordered")
"""The models under which a crash of the second recovery takes less than a minute."""
WAL = "/wal/00000002.wal"

roots = pytest.mark.parametrize("lost", [False, True], ids=["whole", "lost"])
file_systems = pytest.mark.parametrize("model", [model for model in MODELS if model != "posix"])


class Recovered(NamedTuple):
    """The state after a recovery."""

    files: dict[str, bytes]
    view: RuntimeView
    records: dict[str, ObservedRecord | None]
    findings: tuple[str, ...]
    damaged: tuple[str, ...]


def recover(
    process: Process,
    *,
    is_damaged: bool = False,
    started: Iterable[str] = (),
    has_damaged_pack: bool = False,
) -> Recovered:
    """Recover a root; only a recording that ``is_damaged`` may be reported as damaged.

    ``has_damaged_pack``: a pack of records is damaged, and may hide records of ``started``.
    """
    providers: dict[str, Provider] = {"scripted": ScriptedProvider(), "slow": FakeProvider()}
    with Lifetime(process) as (host, loop):
        runtime = loop.run_until_complete(Runtime.recover(host, providers, OPTIONS))
        loop.raise_unhandled()
        store = runtime.records
        assert store is not None
        records = read_store(store, started)
        check_incomplete(store, records)
        check_record_files(host.files, records, is_silent=has_damaged_pack)
    check_report(runtime.report)
    log = runtime.report.recording
    assert log is not None
    if not is_damaged and (log.damaged or log.missing or log.corrupted):
        raise FalseAlarm("recovery reports damage that no crash can do", report=log)
    files = {path[1:]: content for path, content in process.disk.files().items()}
    damaged = tuple(each.path for each in log.damaged)
    return Recovered(files, runtime.view(), records, tuple(log.findings), damaged)


def root_of(*, lost: bool) -> Image:
    """Return the disk; if the end of the log is ``lost``, it has nothing of the last execution."""
    image = recorded_team().image
    if not lost:
        return image
    process = Process(Disk(image))
    content = image.files()[WAL]
    position = content.index(recorded_team().agents["Ada"].encode())
    process.truncate(WAL, content.rindex(b'{"m', 0, position) - 17)
    left = process.disk.snapshot()
    return Image.of_platter(left.cached, left.next_inode)


def check_team(
    found: Recovered, team: RecordedTeam, damaged_pack: str = "", excused: Collection[str] = ()
) -> None:
    """Check the logs of the sessions and the records of the committed turns.

    The records of a ``damaged_pack`` are those of ``excused`` sessions.
    """
    readable = {path: found.files[path] for path in found.files if path != damaged_pack}
    check_turn_records(readable, excused)
    shadow = team.shadow()
    snapshot = shadow.read(found.files)
    shadow.settle(snapshot)
    shadow.check_view(found.view, snapshot, idle=True)


def explored(image: Image, model: str, limits: Limits) -> Exploration:
    """Crash the recovery of a root at every operation, and recover again."""
    expected = recover(Process(Disk(image))).records

    def work(process: Process, ack: History) -> None:
        ack(recover(process).records)

    def judge(found: Recovered, _known: Known) -> None:
        if found.records != expected:
            raise NotIdempotent(
                "a crashed recovery leads to other records",
                expected=expected, actual=found.records,
            )  # fmt: skip
        check_team(found, recorded_team())

    return explore(work, TwoPhases(recover, judge), model, limits, image=image)


def require_safe(found: Exploration) -> None:
    assert found.safe, found.failures[0].violation
    assert found.how.startswith("exhaustive")


@roots
def test_every_crash_of_a_recovery_leads_to_the_records_of_all_committed_turns(lost: bool) -> None:
    require_safe(explored(root_of(lost=lost), "ext4-ordered", LAZY))


@pytest.mark.parametrize("lost", [False, pytest.param(True, marks=pytest.mark.stress)])
def test_crashes_under_the_weakest_model_do_so_too(lost: bool) -> None:
    found = explored(root_of(lost=lost), "posix", SAMPLED)
    assert found.safe, found.failures[0].violation


@pytest.mark.parametrize("lost", [False, True])
def test_the_records_are_those_of_the_turns(lost: bool) -> None:
    found = recover(Process(Disk(root_of(lost=lost))))
    responses = [record.response for record in found.records.values() if record is not None]
    stages = [record.reason for record in found.records.values() if record is not None]
    assert len(responses) == 5
    assert responses.count(None) == stages.count("execution_incomplete") == 1
    assert stages.count("manually_invalidated") == 1
    assert len(found.findings) == lost


@pytest.mark.stress
@file_systems
@roots
def test_every_crash_of_recovery_under_every_model_of_a_file_system(lost: bool, model: str) -> None:
    limits = NESTED if model in NESTED_MODELS else LAZY
    require_safe(explored(root_of(lost=lost), model, limits))


@pytest.mark.stress
@roots
def test_many_crashes_of_a_recovery_under_the_weakest_model(lost: bool) -> None:
    # All of them take more than four minutes.
    found = explored(root_of(lost=lost), "posix", MANY)
    assert found.safe, found.failures[0].violation
