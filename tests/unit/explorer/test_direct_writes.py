"""A kill leaves a part of a direct write under some models only; findings name them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from faults.crash_point import CrashPoint, Phase
from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.harm import Harm
from powercut.explorer.journals import Journals
from powercut.explorer.lazy.crash_sites import crash_sites
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from powercut.fuse.crash_search import search
from powercut.report.findings import weakest
from sim.disk.calls.process import Process
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import MODELS, POSIX, PersistenceModel
from sim.disk.disk import Disk
from tests.litmus.body import Calls, content_of, prepared

TORN_ON = ("ext4-journal", "btrfs", "posix")
_OLD, _NEW = "A12288", "B12288"
_START = prepared(lambda calls: calls.write("f", _OLD))

Points = Callable[[Journal, PersistenceModel], Iterator[CrashPoint]]


def _lazy(journal: Journal, model: PersistenceModel) -> Iterator[CrashPoint]:
    return (each.point for each in crash_sites(journal, History(lambda: 0), model, 0, nested=True))


def _built(journal: Journal, model: PersistenceModel) -> Iterator[CrashPoint]:
    journals = Journals(History(lambda: 0), Limits(), lambda _key, _depth: False)
    return (each.crashes[0] for each in journals.crashes(journal, model))


def _searched(journal: Journal, model: PersistenceModel) -> Iterator[CrashPoint]:
    return (each.crash for each in search(journal, History(lambda: 0), model).found)


@pytest.mark.parametrize("points", [_lazy, _built, _searched])
@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_kill_cuts_a_direct_write_where_the_model_says_so(
    model: PersistenceModel, points: Points
) -> None:
    disk = Disk(_START)
    calls = Calls(Process(disk))
    calls.write_direct("f", _NEW)
    calls.write("f", _OLD)
    during = [each for each in points(disk.journal, model) if each.phase is Phase.DURING]
    kept = {operation: [each.kept for each in during if each.operation == operation]
            for operation in (1, 2)}  # fmt: skip
    assert kept == {1: [4096, 8192] if model.name in TORN_ON else [], 2: [4096, 8192]}


def _is_old_or_new(process: Process, known: Known) -> None:
    """Check the file: it is as it was, or new if that is acknowledged."""
    with process.open_file("/f", "rb") as file:
        content = file.read()
    assert content in {content_of(_OLD), content_of(_NEW)}, "torn"
    if known.acknowledged and content != content_of(_NEW):
        raise LostAck("the file is as it was")


def test_a_finding_names_the_models_of_the_kill() -> None:
    def workload(process: Process, ack: History) -> None:
        Calls(process).write_direct("f", _NEW)
        process.sync()
        ack("new")

    recorded = record(workload, POSIX, _START)
    diagnosis = diagnose(judged(recorded, _is_old_or_new, [*MODELS.values()]))
    (cause,) = diagnosis.causes
    assert cause.failure.crashes[0].phase is Phase.DURING
    assert weakest(diagnosis, cause) == "at a kill on ext4-journal, btrfs and posix"
    assert cause.harms == {Harm.CORRUPTION: [name for name in MODELS if name != "scc"]}


def test_the_harm_of_a_kill_is_that_under_its_own_model() -> None:
    """Where the old content is written again, a kill loses the new one without tearing it."""

    def workload(process: Process, ack: History) -> None:
        calls = Calls(process)
        calls.write_direct("f", _NEW)
        process.sync()
        ack("new")
        calls.write_direct("f", _OLD)
        calls.write_direct("f", _NEW)
        process.sync()

    recorded = record(workload, POSIX, _START)
    models = [MODELS[name] for name in ("scc", *TORN_ON)]
    diagnosis = diagnose(judged(recorded, _is_old_or_new, models))
    (cause,) = diagnosis.causes
    assert weakest(diagnosis, cause) == "at a kill"
    assert (cause.model, cause.harm_of_kills) == ("scc", Harm.LOST_ACKNOWLEDGEMENT)
    assert cause.harms[Harm.CORRUPTION] == [*TORN_ON]
