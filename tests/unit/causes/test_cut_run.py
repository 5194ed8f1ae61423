"""The decisive power cut of a failed run, and the first moment at which it does harm."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oracles.violation import LostAck
from powercut.causes.cut_run import CutRun, decisive, earliest
from powercut.causes.run_diagnosis import diagnose_run
from powercut.fuzz.action import Action, ActionKind, Arguments, Json
from powercut.fuzz.target_run import TargetRun
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.calls.process import Process
from sim.disk.crash.micro_operation import WriteBlock
from tests.unit.causes.failed_runs import LazyReader, action, crashed, failed_runs
from tests.unit.fuzz.broken import careless

PARTS = 3


class FailsAtItsSecondBoot(LazyReader):
    """Fails behind every crash, whatever it loses."""

    boots = 0

    def recover(self, host: Process) -> None:
        self.boots += 1
        if self.boots > 1:
            raise LostAck("it fails")
        super().recover(host)


class InParts(LazyReader):
    """Replaces a file in place by one write for each block, and syncs it by an action."""

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("put", 1, self.put), ActionKind("sync", 1, self.sync)]

    def check_recovered(self) -> None:
        content = None
        if "f" in self.process.listdir("/"):
            descriptor = self.process.open("/f", os.O_RDONLY)
            content = self.process.read(descriptor, PARTS * BLOCK_BYTES)
            self.process.close(descriptor)
        self.expected.settle(content, "/f")

    def put(self, _arguments: Arguments) -> str:
        self.written += 1
        block = b"%d" % (self.written % 10) * BLOCK_BYTES
        self.expected.begin(block * PARTS)
        descriptor = self.process.open("/f", os.O_CREAT | os.O_WRONLY)
        for part in range(PARTS):
            self.process.pwrite(descriptor, block, part * BLOCK_BYTES)
        self.process.close(descriptor)
        self.expected.acknowledge()
        return "ack"

    def sync(self, _arguments: Arguments) -> str:
        self.process.sync()
        return "synced"


def decisive_of(run: TargetRun) -> CutRun:
    cut = decisive(run)
    assert cut is not None
    return cut


def lost_offsets(cut: CutRun) -> list[int]:
    last, point = cut.recorder.power_cuts[cut.power_cut - 1]
    micros = cut.recorder.boots[last].disk.unsynced().micros
    lost = [micros[index] for index in point.survivors.lost]
    return [each.offset for each in lost if isinstance(each, WriteBlock)]


def first_moment(cut: CutRun) -> CutRun:
    return earliest(cut, lambda: False)


def test_a_run_that_fails_without_losses_has_no_decisive_power_cut() -> None:
    runs = failed_runs(FailsAtItsSecondBoot, crashed(action("put"), "power-cut", operation=2))
    run = next(run for run in runs if run.log.steps[-1].crashes[0].point.survivors.lost)
    assert decisive(run) is None
    assert diagnose_run(run) is None


def test_a_moment_at_which_the_run_fails_anyway_is_not_the_earliest() -> None:
    """The middle write is lost. After it the file is torn, whether or not it is lost."""
    put = action("put")
    runs = failed_runs(
        InParts, Action.of_plain(put), Action.of_plain(action("sync")), crashed(put, "power-cut")
    )
    cuts = map(decisive_of, runs)
    cut = next(each for each in cuts if lost_offsets(each) == [BLOCK_BYTES])
    moved = first_moment(cut)
    assert moved.steps[-1].action == crashed(put, "power-cut")


class InOne(InParts):
    """Replaces a file in place by one write of all blocks, and then makes a directory."""

    def put(self, _arguments: Arguments) -> str:
        self.written += 1
        content = b"%d" % (self.written % 10) * BLOCK_BYTES * PARTS
        self.expected.begin(content)
        descriptor = self.process.open("/f", os.O_CREAT | os.O_WRONLY)
        self.process.pwrite(descriptor, content, 0)
        self.process.close(descriptor)
        self.process.mkdir(f"/{self.written}")
        self.expected.acknowledge()
        return "ack"


def test_the_earliest_moment_may_be_right_behind_the_lost_operation() -> None:
    put = action("put")
    runs = failed_runs(
        InOne, Action.of_plain(put), Action.of_plain(action("sync")), crashed(put, "power-cut")
    )
    cuts = map(decisive_of, runs)
    cut = next(each for each in cuts if 0 < len(lost_offsets(each)) < PARTS)
    moved = first_moment(cut)
    assert moved.steps[-1].action == crashed(put, "power-cut", operation=1)


def test_the_power_cuts_before_the_decisive_one_stay_as_they_were() -> None:
    put = action("put")
    runs = failed_runs(
        InParts,
        crashed(action("sync"), "power-cut"),
        Action.of_plain(put),
        Action.of_plain(action("sync")),
        crashed(put, "power-cut"),
    )
    cut = decisive_of(next(runs))
    moved = first_moment(cut)
    assert moved.power_cut == 2
    assert "/f" in moved.image.files()


def test_the_cause_is_the_one_that_leads_to_the_disk_of_the_run() -> None:
    write: dict[str, Json] = {"name": "write", "arguments": {"text": "text"}}
    places = set()
    for run in failed_runs(careless, Action.of_plain(write), crashed(write, "power-cut")):
        found = diagnose_run(run)
        assert found is not None
        image = first_moment(decisive_of(run)).image.digest()
        images = {each.image for failures in found.cause.failures.values() for each in failures}
        assert image in images
        places.add(found.diagnosis.causes.index(found.cause))
        if len(places) > 1:
            return
    raise AssertionError("every run has the first cause")
