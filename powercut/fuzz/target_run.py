"""An engine-neutral target_run: actions as data, crashes around them, an oracle beside them.

A machine runs one target (a part of the system, with its shadow) on one simulated world.
Whoever drives it asks for an action, has it performed, and gives the choices that either
needs; the machine draws from nowhere else. So the same actions and choices repeat the
same run, byte for byte, whichever driver they came from.

``crash_and_recover`` wraps any other action: the process is killed or the power is cut at
one of its operations, or right after it; then the next lifetime boots and recovers, and
that recovery may be crashed in the same way, to any depth. ``with_fault`` lets one action
meet a fault; ``fault_on`` lets everything meet it until ``fault_off``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from powercut.fuzz.action import Action, ActionKind, Arguments, possible_now, weighted
from powercut.fuzz.crash_plan import again, planned
from powercut.fuzz.crash_runner import RECOVERY, CrashRunner
from powercut.fuzz.disk_faults import DiskFaults
from powercut.fuzz.step import Step
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import MakeTarget
from sim.choices import Choices, Diverged, PlainChoices, RecordingChoices
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.loop.sandbox import SANDBOX
from sim.trace import Trace
from sim.world import World

_REMEMBERED: Final = 100
"""Steps whose dead disks are kept; those of a run of thousands would fill the memory."""


class TargetRun:
    """One run of one target, on a disk of its own under ``model``.

    ``steps`` is what was done so far; the last one may have ended in a failure. ``kinds``
    are all kinds of action. ``trace``, if given, is told everything, which costs more than
    the run.

    ``perform`` and ``finish`` raise what the oracle finds, and whatever the target
    raises that it should not.
    """

    FAULTS: Final = frozenset(("fault_on", "with_fault"))
    """The kinds that bring faults of the disk."""

    def __init__(
        self,
        make_target: MakeTarget,
        model: PersistenceModel = POSIX,
        trace: Trace | None = None,
    ) -> None:
        self.model = model
        self.trace = trace
        self.target = make_target()
        self.steps: list[Step] = []
        self.tally = Tally(runs=1, marks=self.target.marks)
        plain = PlainChoices()
        world = World(self.target.make_host, plain, model)
        world.trace = trace
        self.faults = DiskFaults(world, self.target, self.tally)
        self.target.attach(world)
        self.crash_runner = CrashRunner(self.target, world, self.faults, self.tally, plain)
        self._wrapped = tuple(self.target.actions())
        self.kinds = (*self._wrapped, *(() if self.target.crash_free else self._disturbances()))
        self._by_name = {kind.name: kind for kind in self.kinds}
        with SANDBOX:
            self.crash_runner.boot()

    @property
    def features(self) -> Mapping[str, int]:
        """What a swarm may leave out beside kinds: labels, and how many answers each has."""
        return {"family": len(self.faults.families), **self.target.features}

    def propose(self, choices: Choices) -> Action:
        """Choose what to do next among what is possible now."""
        return _propose_among(choices, "action", self.kinds)

    def perform(self, action: Action, choices: Choices) -> None:
        """Do it, and let the oracle look.

        Raises ``Diverged`` if the action is not possible now, which only a replay can meet.
        """
        step = Step(len(self.steps) + 1, action)
        self.steps.append(step)
        if step.number > _REMEMBERED:
            self.steps[-_REMEMBERED - 1].forget_disks()
        self.tally.steps += 1
        self.crash_runner.choices = RecordingChoices(choices, step.chosen)
        self.crash_runner.crashes = step.crashes
        self.target.before_step(self.crash_runner.choices)
        if self.trace is not None:
            self.trace.add(f"step {step.number} {action.plain()}")
        with SANDBOX:
            step.outcome = self._kind_of(action).perform(action.arguments)
        if self.trace is not None:
            self.trace.add(f"outcome {step.outcome} choices {step.chosen}")

    def finish(self) -> None:
        """Lift all faults: all that was accepted must be done. Restart: it must be there."""
        self.faults.lift()
        self.crash_runner.choices = PlainChoices()
        with SANDBOX:
            self.target.quiesce()
            self.crash_runner.recover_twice(self.crash_runner.world.stop)
        self.crash_runner.world.stop()

    def _disturbances(self) -> Sequence[ActionKind]:
        """Return what befalls the target's actions: faults and crashes."""
        weight = sum(kind.weight for kind in self._wrapped)
        return (
            *self.faults.actions(),
            ActionKind(
                "with_fault", max(1, weight // 2), self._with_fault, self._propose_fault,
                lambda: not self.faults.on,
            ),
            ActionKind(
                "recover_twice", max(1, weight // 10), self._recover_twice,
                ready=lambda: not self.faults.on,
            ),
            ActionKind(
                "crash_and_recover", max(1, weight // self.target.actions_per_crash),
                self._crash_and_recover, self._propose_crash,
            ),
        )  # fmt: skip

    def abandon(self) -> None:
        """End the lifetime in which a run has failed or was given up, if there is one."""
        if self.crash_runner.world.alive:
            self.crash_runner.world.stop()

    def _kind_of(self, action: Action) -> ActionKind:
        kind = self._by_name.get(action.name)
        if kind is None or not kind.ready():
            possible = ", ".join(kind.name for kind in possible_now(self.kinds))
            raise Diverged(0, f"one of {possible}", action.name)
        return kind

    def _propose_crash(self, choices: Choices) -> Arguments:
        action = _propose_among(choices, "crashed action", self._wrapped)
        planner = self.crash_runner.planner
        crashes = [planner.propose(choices, action.name)]
        while again(choices, len(crashes)):
            crashes.append(planner.propose(choices, RECOVERY))
        return {"action": action.plain(), "crashes": [crash.plain() for crash in crashes]}

    def _propose_fault(self, choices: Choices) -> Arguments:
        action = _propose_among(choices, "faulted action", self._wrapped)
        return {"action": action.plain(), **self.faults.propose(choices, most_count=2)}

    def _with_fault(self, arguments: Arguments) -> str:
        action = Action.of_plain(arguments["action"])
        kind = self._kind_of(action)
        self.faults.switch_on(str(arguments["plan"]))
        outcome = kind.perform(action.arguments)
        self.faults.lift()
        return outcome

    def _crash_and_recover(self, arguments: Arguments) -> str:
        action = Action.of_plain(arguments["action"])
        first, *following = planned(arguments)
        kind = self._kind_of(action)
        self.crash_runner.crash(action.name, first, lambda: kind.perform(action.arguments))
        for depth, crash in enumerate(following, 1):
            self.crash_runner.boot(crash, depth)
        self.crash_runner.boot()
        return "recovered"

    def _recover_twice(self, _arguments: Arguments) -> str:
        self.crash_runner.recover_twice(self.crash_runner.world.kill)
        return "recovered twice"


def _propose_among(choices: Choices, label: str, kinds: Sequence[ActionKind]) -> Action:
    kind = weighted(choices, label, possible_now(kinds))
    return Action(kind.name, kind.propose(choices))
