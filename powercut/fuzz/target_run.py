"""One run of a target: actions as data, with crashes, faults and checks around them.

A driver proposes an action, has it performed, and passes the ``Choices`` that both need. The
run asks nothing else, so the same actions and choices repeat it byte for byte, whichever
driver they came from.

``crash_and_recover`` wraps another action: the process is killed or the power is cut at one
of its disk operations, or after it has returned; the next lifetime boots and recovers, and
that recovery may be crashed in the same way, to any depth. ``with_fault`` injects a fault
into one action; ``fault_on`` injects it until ``fault_off``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from powercut.fuzz.action import (
    CRASH_AND_RECOVER,
    FAULT_ON,
    RECOVER_TWICE,
    WITH_FAULT,
    Action,
    ActionKind,
    Arguments,
    possible_now,
    prepared,
    weighted,
)
from powercut.fuzz.crash_runner import RECOVERY, CrashRunner, again, planned
from powercut.fuzz.disk_faults import DiskFaults
from powercut.fuzz.lifetime_recorder import LifetimeRecorder
from powercut.fuzz.run_log import (
    NearestChoices,
    RecordedStep,
    Recorder,
    RunLog,
    detail_of,
    exits_are_failures,
    failure_of,
    name_of,
)
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_mistake import FailsAtStart, TargetMistake
from powercut.place import raised_at
from sim.choices import Choices, Chosen, Diverged, PlainChoices, RecordingChoices, ReplayChoices
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.errors import HarnessError, text_of
from sim.loop.sandbox import SANDBOX
from sim.trace import Trace
from sim.world import World

FAULTS: Final = frozenset((FAULT_ON, WITH_FAULT))
"""The kinds of action that inject faults."""

_STEPS_WITH_DISKS: Final = 100
"""The latest steps, whose crashed disks are kept for the story; all would fill the memory."""


class TargetRun:
    """One run of the target that ``make_target`` returns, on a new disk under ``model``.

    ``log`` records the run. ``failure`` is the exception that ended it, or None. ``unused``
    counts the recorded answers that ``repeat`` had no question for. ``kinds`` are the kinds
    of action that are proposed. ``trace``, if given, receives every detail, which costs more
    than the run itself. ``with_places`` records its lifetimes, with the line of the program for
    each operation.
    """

    def __init__(
        self,
        make_target: MakeTarget,
        model: PersistenceModel = POSIX,
        trace: Trace | None = None,
        *,
        with_places: bool = False,
    ) -> None:
        self.make_target = make_target
        self.model = model
        self.trace = trace
        self.failure: Exception | None = None
        self.unused = 0
        self._proposal: RecordedStep | None = None
        plain = PlainChoices()
        with SANDBOX.preparing():
            self.target = make_target()
            self.log = RunLog(self.target.tag, model.name)
            self.tally = Tally(runs=1, marks=self.target.marks)
            world = World(self.target.make_host, plain, model)
            world.trace = trace
            self.faults = DiskFaults(world, self.target, self.tally)
            self.target.attach(world)
            self.crash_runner = CrashRunner(self.target, world, self.faults, self.tally, plain)
            if with_places:
                self.crash_runner.recorder = LifetimeRecorder(self.target.adapters)
            self._wrapped = tuple(self.target.actions())
            kinds = (*self._wrapped, *(() if self.target.crash_free else self._disturbances()))
            self._by_name = {kind.name: kind for kind in kinds}
            # A target that leaves out all faults may still be given a plan by its name.
            faulty = self.faults.features
            self.kinds = tuple(kind for kind in kinds if faulty or kind.name not in FAULTS)
        with SANDBOX:
            self._start()

    def _start(self) -> None:
        """Start the first lifetime; raise ``FailsAtStart`` if the target fails."""
        try:
            with exits_are_failures():
                self.crash_runner.boot()
        except HarnessError:
            raise
        except Exception as failure:
            at = raised_at((failure.__cause__ or failure).__traceback__)
            raise FailsAtStart(
                f"target {self.target.tag!r} fails at its first start, before any crash: "
                f"{type(failure).__name__}: {failure}{at}"
            ) from failure

    @property
    def features(self) -> Mapping[str, int]:
        """Labels of which a swarm may leave out some answers, and their number of answers."""
        return {**self.faults.features, **self.target.features}

    def propose(self, choices: Choices) -> Action:
        """Choose the next action among those that are possible now."""
        chosen: list[Chosen] = []
        with SANDBOX.preparing():
            action = _propose_among(Recorder(choices, chosen), "action", self.kinds)
        self._proposal = RecordedStep(action, chosen)
        return action

    @exits_are_failures()
    def perform(self, action: Action, choices: Choices) -> None:
        """Perform an action and check the result.

        Raises a ``Violation``, or whatever else the target raises; ``Diverged`` if the action
        is not possible now, which only a replay can meet.
        """
        assert self.failure is None, "a run ends with its first failure"
        proposal, self._proposal = self._proposal, None
        step = RecordedStep(action)
        if proposal is not None and proposal.action is action:
            step = proposal
        steps = self.log.steps
        steps.append(step)
        if len(steps) > _STEPS_WITH_DISKS:
            steps[-_STEPS_WITH_DISKS - 1].drop_disks()
        self.tally.steps += 1
        if self.crash_runner.recorder is not None:
            self.crash_runner.recorder.begin_step()
        self.crash_runner.choices = RecordingChoices(choices, step.chosen)
        self.crash_runner.crashes = step.crashes
        with SANDBOX:
            prepared("before_step", self.target.before_step, self.crash_runner.choices)
            if self.trace is not None:
                self.trace.add(f"step {len(steps)} {action.plain()}")
            step.outcome = self._act(self._kind_of(action), action)
        self.tally.changed |= self.crash_runner.world.disk.operations > 0
        if self.trace is not None:
            self.trace.add(f"outcome {step.outcome} choices {step.chosen}")

    def perform_nearest(self, step: RecordedStep) -> None:
        """Perform a recorded step with its nearest answers, or not at all if it is not possible.

        The action is proposed again, so that its arguments fit this run; one that was not
        proposed, or was read from a file, is performed as it is.
        """
        choices, action = NearestChoices(step), step.action
        if step.proposed:
            try:
                action = self.propose(choices)
            except Diverged:
                return
            if step.is_disturbed_as_given and self._proposal is not None:
                action = step.action.around(action)
                proposed = self._proposal.proposed
                self._proposal = RecordedStep(action, proposed, is_disturbed_as_given=True)
        self.perform(action, choices)

    def perform_if_possible(self, step: RecordedStep) -> bool:
        """Perform a recorded step with its nearest answers; return whether it was possible."""
        steps = len(self.log.steps)
        try:
            self.perform_nearest(step)
        except Diverged:
            del self.log.steps[steps:]
        return len(self.log.steps) > steps

    @exits_are_failures()
    def finish(self) -> None:
        """Lift all faults, complete all accepted work, restart twice, and check the result."""
        self.faults.lift()
        self.crash_runner.choices = PlainChoices()
        with SANDBOX:
            self.crash_runner.check("quiesce", self.target.quiesce)
            self.crash_runner.recover_twice(self.crash_runner.world.stop)
        self.crash_runner.world.stop()

    def complete(self, perform_steps: Callable[[], None]) -> Exception | None:
        """Call ``perform_steps``, finish, and return the failure, or None if the run passed.

        No lifetime is alive afterwards.
        """

        def everything() -> None:
            perform_steps()
            self.finish()

        try:
            failure = failure_of(everything)
        finally:
            self.abandon()
        if failure is not None:
            self.fail(failure)
        return failure

    def repeat(self, log: RunLog) -> Exception | None:
        """Perform the recorded steps, finish, and return the failure, or None.

        ``unused`` counts the recorded answers to questions that the run does not ask. Raises
        ``Diverged`` at a question that was not recorded, or an action that is not possible.
        """

        def perform_steps() -> None:
            for step in log.steps:
                choices = ReplayChoices(step.chosen)
                try:
                    self.perform(step.action, choices)
                finally:
                    self.unused += choices.unused

        return self.complete(perform_steps)

    def repeat_nearest(self, steps: Iterable[RecordedStep]) -> Exception | None:
        """Perform those recorded steps that are possible, and finish; return the failure.

        It is None as well for a run that comes to an action that is not possible, or to a state
        in which the target cannot prepare a step.
        """

        def perform_steps() -> None:
            for step in steps:
                self.perform_nearest(step)

        try:
            self.complete(perform_steps)
        except (Diverged, TargetMistake):
            assert self.failure is None
        return self.failure

    def fail(self, failure: Exception) -> None:
        """Record that the run has ended in ``failure``."""
        self.failure = failure
        log = self.log
        log.broken, log.statement = name_of(failure), text_of(failure)
        log.detail = detail_of(failure)

    def abandon(self) -> None:
        """End the current lifetime, if there is one, without any check."""
        if self.crash_runner.world.alive:
            self.crash_runner.world.stop()

    def fresh(self, trace: Trace | None = None) -> TargetRun:
        """Return a new run of the same target under the same model."""
        return TargetRun(self.make_target, self.model, trace)

    def placed(self) -> TargetRun:
        """Return this run with the lines of the program, by repeating it once.

        A run that fails in another way when it is repeated is returned as it is.
        """
        if self.crash_runner.recorder is not None:
            return self
        again = TargetRun(self.make_target, self.model, with_places=True)
        try:
            again.repeat(self.log)
        except Diverged:
            return self
        return again if again.log == self.log else self

    def _disturbances(self) -> Sequence[ActionKind]:
        """Return the kinds of action that crash and fault those of the target."""
        weight = sum(kind.weight for kind in self._wrapped)
        return (
            *self.faults.actions(),
            ActionKind(
                WITH_FAULT, max(1, weight // 2), self._with_fault, self._propose_fault,
                lambda: not self.faults.on,
            ),
            ActionKind(
                RECOVER_TWICE, max(1, weight // 10), self._recover_twice,
                ready=lambda: not self.faults.on,
            ),
            ActionKind(
                CRASH_AND_RECOVER, max(1, weight // self.target.actions_per_crash),
                self._crash_and_recover, self._propose_crash,
            ),
        )  # fmt: skip

    def _kind_of(self, action: Action) -> ActionKind:
        kind = self._by_name.get(action.name)
        if kind is None or not kind.is_ready():
            possible = ", ".join(kind.name for kind in possible_now(self.kinds))
            raise Diverged(0, f"one of {possible}", action.name)
        return kind

    def _act(self, kind: ActionKind, action: Action) -> str:
        if kind not in self._wrapped:
            return kind.perform(action.arguments)
        return kind.performed(self.crash_runner.call(action, kind.perform, action.arguments))

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
        outcome = self._act(kind, action)
        self.faults.lift()
        return outcome

    def _crash_and_recover(self, arguments: Arguments) -> str:
        action = Action.of_plain(arguments["action"])
        first, *following = planned(arguments)
        kind = self._kind_of(action)
        self.crash_runner.crash(action.name, first, lambda: self._act(kind, action))
        for depth, crash in enumerate(following, 1):
            self.crash_runner.boot(crash, depth)
        self.crash_runner.boot()
        return "recovered"

    def _recover_twice(self, _arguments: Arguments) -> str:
        self.crash_runner.recover_twice(self.crash_runner.world.kill)
        return "recovered twice"


def _propose_among(choices: Choices, label: str, kinds: Sequence[ActionKind]) -> Action:
    possible = possible_now(kinds)
    if not possible:
        raise TargetMistake(
            f"no action is possible; one of {', '.join(kind.name for kind in kinds)} must be "
            "ready at any time"
        )
    return weighted(choices, label, possible).proposed(choices)
