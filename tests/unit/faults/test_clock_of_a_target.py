"""A clock rule of a fault plan reaches the system under test of a target run."""

from __future__ import annotations

from collections.abc import Sequence

from faults.crash_point import CrashKind, Phase
from powercut.fuzz.action import Action, ActionKind, Arguments
from powercut.fuzz.crash_runner import PlannedCrash
from powercut.fuzz.target import Target
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.loop.clock import EPOCH_NS
from sim.world import Boot

SECOND_NS = 1_000_000_000


class ClockTarget(Target[Boot]):
    """A system that reads the time of its host, and the time stamp of a file that it makes."""

    tag = "clock"

    def __init__(self) -> None:
        self.seconds: list[tuple[int, int]] = []
        self.boots = 0

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("read_clock", 1, self._read_clock)]

    def make_host(self, boot: Boot) -> Boot:
        return boot

    def recover(self, host: Boot) -> None:
        self.boot = host
        self.boots += 1

    def _read_clock(self, _arguments: Arguments) -> str:
        path = f"/{self.boots}-{len(self.seconds)}"
        self.boot.process.mkdir(path)
        times_ns = (self.boot.clock.wall_ns(), self.boot.process.stat(path).st_mtime_ns)
        now_s, made_s = ((time_ns - EPOCH_NS) // SECOND_NS for time_ns in times_ns)
        self.seconds.append((now_s, made_s))
        return "read"


def test_a_clock_rule_steps_the_clock_of_a_target_until_it_is_lifted() -> None:
    target, choices = ClockTarget(), PlainChoices()
    run = TargetRun(lambda: target)
    read = Action("read_clock", {})
    kill = PlannedCrash(0, Phase.AFTER, CrashKind.KILL)
    crash: Arguments = {"action": read.plain(), "crashes": [kill.plain()]}
    for action in (
        read,
        Action("fault_on", {"plan": "clock * #1 back:90s"}),
        read,
        Action("crash_and_recover", crash),
        read,
        Action("fault_off", {}),
        read,
    ):
        run.perform(action, choices)
    run.finish()
    assert target.seconds == [(0, 0), (-90, -90), (-90, -90), (-90, -90), (0, 0)]
    assert run.tally.faults == 1
