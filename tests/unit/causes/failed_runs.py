"""Failed runs of targets, under the survivors with which they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from oracles.shadow_file import ShadowFile
from powercut.fuzz.action import Action, ActionKind, Arguments, Json
from powercut.fuzz.target import DiskTarget, MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import SeededChoices
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import POSIX, PersistenceModel

SEEDS = 100


def action(name: str) -> dict[str, Json]:
    return {"name": name, "arguments": {}}


def crashed(wrapped: dict[str, Json], *kinds: str, operation: int = 0) -> Action:
    """Perform an action and crash it, and then each recovery but the last one."""
    crashes: list[Json] = [
        {"operation": operation, "phase": "after", "kind": kind, "kept": 0} for kind in kinds
    ]
    return Action("crash_and_recover", {"action": wrapped, "crashes": crashes})


def failed_runs(
    make_target: MakeTarget, *actions: Action, model: PersistenceModel = POSIX
) -> Iterator[TargetRun]:
    """Yield the runs of the actions that fail, each under other survivors."""
    for seed in range(SEEDS):
        run = TargetRun(make_target, model)
        _perform(run, actions, seed)
        if run.failure is not None:
            yield run


def failed(make_target: MakeTarget, *actions: Action) -> TargetRun:
    """Return a run of the actions that fails, under the first survivors with which it does."""
    return next(failed_runs(make_target, *actions))


def _perform(run: TargetRun, actions: Sequence[Action], seed: int) -> None:
    choices = SeededChoices(seed)

    def perform_steps() -> None:
        for each in actions:
            run.perform(each, choices)

    run.complete(perform_steps)


class LazyReader(DiskTarget):
    """Syncs at the end of an action; its recovery trusts the page cache that a kill has left."""

    def __init__(self) -> None:
        self.expected = ShadowFile[bytes]()
        self.written = 0
        self.process: Process

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("put", 1, self.put)]

    def recover(self, host: Process) -> None:
        self.process = host

    def check_recovered(self) -> None:
        names = self.process.listdir("/")
        found = None
        if "f" in names:
            descriptor = self.process.open("/f", os.O_RDONLY)
            found = self.process.read(descriptor, 9)
            self.process.close(descriptor)
        self.expected.settle(found, "/f")

    def put(self, _arguments: Arguments) -> str:
        self.written += 1
        data = b"%d" % self.written
        self.expected.begin(data)
        descriptor = self.process.open("/t", os.O_CREAT | os.O_WRONLY)
        self.process.write(descriptor, data)
        self.process.fsync(descriptor)
        self.process.close(descriptor)
        self.process.rename("/t", "/f")
        root = self.process.open("/", os.O_RDONLY)
        self.process.fsync(root)
        self.process.close(root)
        self.expected.acknowledge()
        return "ack"
