"""Targets: the systems that are fuzzed, each with its actions and its oracle.

A user's own target derives from ``DiskTarget``, or from ``Target`` if the system needs more
than a disk::

    class StoreTarget(DiskTarget):
        def __init__(self) -> None:
            self.expected = ShadowFile[bytes]()

        def actions(self) -> Sequence[ActionKind]:
            return [ActionKind("put", 4, self._put, self._propose_put)]

        def recover(self, host: Process) -> None:
            self.store = Store(host)

        def check_recovered(self) -> None:
            self.expected.settle(self.store.value, "store")

``powercut run package.module:StoreTarget`` fuzzes it.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar

from faults.fault_plan import FaultPlan
from oracles.marks import KILLED, POWER_CUT_LOST, TORN, Marks
from powercut.fuzz.action import DISTURBANCES, ActionKind
from powercut.fuzz.fault_families import LEFT_OUT, SAMPLE_NUMBERS, FaultFamily
from powercut.fuzz.mistyped_member import refuse_mistyped
from powercut.place import defined_at, raised_at
from powercut.reference import load
from powercut.user_function import idle_kind, must_take
from sim.choices import Choices, PlainChoices
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import PersistenceModel
from sim.errors import HarnessError, class_of
from sim.loop.sandbox import SANDBOX
from sim.world import Boot, World

H = TypeVar("H")

_METHODS: Final = (
    "attach", "make_host", "recover", "check_recovered", "check_second_recovery", "before_step",
    "quiesce",
)  # fmt: skip
_MEMBERS: Final = {"perform": ("arguments",), "propose": ("choices",), "ready": ()}
_TEXTS: Final = ("fault_rules", "expected_marks", "rare_marks", "adapters", "changed_by_boot")


class Target(ABC, Generic[H]):
    """A system under test, the actions that can be done to it, and the checks of its state.

    Each run creates one target and calls ``attach`` once. Each lifetime of the run calls
    ``make_host``, ``recover`` and ``check_recovered``, and then performs actions until it is
    crashed. ``quiesce`` is called once, at the end of the run. Every check reports a broken
    property by raising a ``Violation``.

    ``tag`` names the target in reproducers and on the command line.

    ``fault_plan`` is set by the engine: the fault plan in force, as it prints, or the empty
    string. While it is not empty, an ``OSError`` is a correct answer of the system, which actions
    must catch: any exception that leaves an action is a failure. Meanwhile a recovery may raise any
    of ``refusals``, and ``check_recovered`` an ``OSError``; the system is started again without
    the faults.

    The run injects the faults of all fault families but those in ``families_left_out``, which
    maps each to the reason; by default, those that damage data silently, and interrupted calls,
    which Python repeats (PEP 475). ``fault_rules`` are further fault rules in printed form, in
    which names in braces stand for numbers, as in ``write * #{count} EIO``
    (``powercut.fuzz.fault_families``). ``crash_free`` targets are neither crashed nor given
    faults.

    ``adapters`` are source files of the system that only pass calls on to the disk: a report
    names the lines that call them.

    ``changed_by_boot`` are the paths of files that every boot rewrites, such as a boot
    counter. In a path, ``*`` stands for any characters: files of such names may also come and
    go, as the segments of a log do. A second recovery must leave all others unchanged.

    ``actions_per_crash`` is the number of actions performed undisturbed for each one that is
    crashed; raise it for a system in which crashes matter only after some history.

    ``features`` maps labels of choices to their number of answers; the swarm leaves out some
    answers of these labels in most runs, so that runs differ.

    ``expected_marks`` are the marks that a campaign under ``posix`` must reach, ``rare_marks``
    those of them that a campaign of one minute may miss. ``turn_steps`` is the number of
    steps that the target is given in each turn of a campaign of several targets.
    """

    tag: str = ""
    fault_plan: str = ""
    refusals: tuple[type[Exception], ...] = (Exception,)
    fault_rules: Sequence[str] = ()
    families_left_out: Mapping[FaultFamily, str] = LEFT_OUT
    crash_free: bool = False
    adapters: tuple[str, ...] = ()
    changed_by_boot: frozenset[str] = frozenset()
    actions_per_crash: int = 1
    features: Mapping[str, int] = MappingProxyType({})
    expected_marks: Sequence[str] = (KILLED, POWER_CUT_LOST)
    rare_marks: Sequence[str] = ()
    turn_steps: int = 300

    @cached_property
    def marks(self) -> Marks:
        """The marks that this run has reached."""
        return Marks()

    @property
    def fault_families(self) -> Sequence[FaultFamily]:
        """The fault families whose faults the run injects."""
        return [family for family in FaultFamily if family not in self.families_left_out]

    @abstractmethod
    def actions(self) -> Sequence[ActionKind]:
        """Return the kinds of action, the simplest first."""

    @abstractmethod
    def make_host(self, boot: Boot) -> H:
        """Build the interface through which the system runs in one lifetime."""

    @abstractmethod
    def recover(self, host: H) -> None:
        """Start the system on ``host`` and let it recover.

        A lifetime may be crashed anywhere inside. An exception is an
        ``UnreadableAfterCrash`` violation, unless it is one of ``refusals`` and a fault plan
        is in force.
        """

    def attach(self, world: World[H]) -> None:
        """Receive the simulated machine on which all lifetimes of the run take place."""
        del world

    def check_recovered(self) -> None:
        """Check the state that a recovery has left, before any action."""
        return

    def check_second_recovery(self) -> None:
        """Check that the last recovery, which followed another one, found nothing to do."""
        return

    def before_step(self, choices: Choices) -> None:
        """Choose, before each step, the schedule of the simulated machine."""
        del choices

    def quiesce(self) -> None:
        """Complete all accepted work and check the result; no fault is in force any more."""
        return


class DiskTarget(Target[Process]):
    """A target whose system needs nothing but a disk.

    Its host is the ``Process``: the calls of ``os`` on the simulated disk.
    """

    def make_host(self, boot: Boot) -> Process:
        """Return the process of this lifetime."""
        return boot.process


AnyTarget: TypeAlias = Target[Any]
MakeTarget: TypeAlias = Callable[[], AnyTarget]


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """One target of a campaign, as plain values that go to worker processes.

    ``reference`` is ``module:object``, a callable that returns a new ``Target``. ``marks`` are
    those that a campaign under ``posix`` can reach; a campaign of a minute may miss the
    ``rare`` ones. ``turn`` is the number of steps the target gets in each turn of a campaign.
    A ``crash_free`` target is given no faults.
    """

    tag: str
    reference: str
    marks: tuple[str, ...] = ()
    turn: int = 300
    rare: tuple[str, ...] = ()
    crash_free: bool = False

    @classmethod
    def of(cls, tag: str, reference: str) -> TargetEntry:
        """Import the target, make one and read its marks.

        Raises ``HarnessError`` in one sentence if it cannot be imported or made, is not a
        target, or has no actions.
        """
        target = check_target(reference, cls(tag, reference).load())
        return cls(
            tag,
            reference,
            tuple(target.expected_marks),
            target.turn_steps,
            tuple(target.rare_marks),
            target.crash_free,
        )

    def make_target(self) -> AnyTarget:
        """Return a new target under this tag."""
        return self.load()()

    def load(self) -> MakeTarget:
        """Import the target; return a factory of targets under this tag."""
        make = load(self.reference)
        if not callable(make):
            raise HarnessError(
                f"{self.reference} is not callable: {make!r}; name the class of the target, or a "
                "function that returns one"
            )
        must_take(self.reference, make)

        def make_target() -> AnyTarget:
            target = _target_of(self.reference, make())
            target.tag = self.tag
            return target

        return make_target

    def under(self, model: PersistenceModel) -> TargetEntry:
        """Return this target with the marks that a campaign under ``model`` can reach."""
        if model.torn_units:
            return self
        return replace(self, marks=tuple(mark for mark in self.marks if mark != TORN))


def _target_of(reference: str, made: object) -> AnyTarget:
    """Return what a factory has made; raises ``HarnessError`` if it is no target."""
    if isinstance(made, Target):
        return made
    raise HarnessError(f"{reference} returns {made!r}, which does not derive from powercut.Target")


def check_target(reference: str, make_target: MakeTarget) -> AnyTarget:
    """Make a target and return it; raises ``HarnessError`` as ``TargetEntry.of``."""
    try:
        with SANDBOX.preparing():
            target = _target_of(reference, make_target())
            if target is make_target():
                raise HarnessError(
                    f"{reference} returns one target twice, and must make a new one for each run"
                )
            must_take(f"{reference} has actions, which", target.actions)
            refuse_mistyped(reference, target, DiskTarget)
            _check_members(reference, target)
            target.attach(World(target.make_host, PlainChoices()))
            actions = tuple(target.actions() or ())
    except HarnessError:
        raise
    except (Exception, SystemExit) as failure:
        text = " ".join(str(failure).split())
        raise HarnessError(
            f"{reference} raises {class_of(failure)} when the target is made: {text}"
            f"{raised_at(failure.__traceback__)}"
        ) from failure
    if not actions:
        raise HarnessError(f"{reference} has no actions: its actions() returns none of them")
    _check_actions(reference, actions)
    _check_faults(reference, target)
    return target


def _check_members(reference: str, target: AnyTarget) -> None:
    """Raise ``HarnessError`` for a method that cannot be called, and for wrong attributes."""
    for name in _METHODS:
        _, *parameters = inspect.signature(getattr(Target, name)).parameters
        _must_run(f"{reference} has {name}, which", getattr(target, name), *parameters)
    try:
        issubclass(Exception, target.refusals)
    except TypeError:
        raise HarnessError(
            f"{reference} has refusals={target.refusals!r}, and must have a tuple of exception "
            "classes, such as (OSError,)"
        ) from None
    for name in _TEXTS:
        value: object = getattr(target, name)
        if not _is_list_of_texts(value):
            raise HarnessError(f"{reference} has {name}={value!r}, and must have a list of texts")
    for name in ("turn_steps", "actions_per_crash"):
        number: object = getattr(target, name)
        if not isinstance(number, int) or number < 1:
            raise HarnessError(
                f"{reference} has {name}={number!r}, and must have a whole number from 1"
            )
    features: object = target.features
    if not isinstance(features, Mapping) or not all(
        isinstance(label, str) and isinstance(answers, int) for label, answers in features.items()
    ):
        raise HarnessError(
            f"{reference} has features={features!r}, and must map labels of choices to their "
            "numbers of answers"
        )


def _is_list_of_texts(value: object) -> bool:
    """Return whether it is a collection of texts, and not one text, which is one of letters."""
    if isinstance(value, str) or not isinstance(value, Collection):
        return False
    return all(isinstance(each, str) for each in value)


def _must_run(beginning: str, function: object, *parameters: str) -> None:
    """Raise ``HarnessError`` unless it is a function that a call with ``parameters`` runs."""
    if not callable(function):
        raise HarnessError(f"{beginning} is {function!r}, and must be a function")
    must_take(beginning, function, *parameters)
    if kind := idle_kind(function):
        raise HarnessError(
            f"{beginning} is a {kind}: a call of it does nothing; make it a plain function, which "
            f"may call run_until_complete(...) of the loop of its Boot{defined_at(function)}"
        )


def _check_faults(reference: str, target: AnyTarget) -> None:
    """Raise ``HarnessError`` for unknown fault families, and for malformed fault rules."""
    left_out: object = target.families_left_out
    if not isinstance(left_out, Collection):
        raise HarnessError(
            f"{reference} has families_left_out={left_out!r}, and must map each family that it "
            "leaves out to the reason"
        )
    unknown = [name for name in left_out if name not in tuple(FaultFamily)]
    if unknown:
        raise HarnessError(
            f"{reference} leaves out the fault family {unknown[0]!r}; known are "
            f"{', '.join(FaultFamily)}"
        )
    for rule in target.fault_rules:
        try:
            FaultPlan.parse(rule.format(**SAMPLE_NUMBERS))
        except HarnessError as mistake:
            raise HarnessError(f"{reference} has wrong fault_rules: {mistake}") from mistake
        except (LookupError, ValueError):
            raise HarnessError(
                f"{reference} has the fault rule {rule!r}, and must have texts, in which only "
                "{count}, {following}, {size} and {sector} are in braces"
            ) from None


def _check_actions(reference: str, actions: Sequence[ActionKind]) -> None:
    """Raise ``HarnessError`` unless each has a weight, and a name of its own."""
    names: set[str] = set()
    for kind in actions:
        if not isinstance(kind, ActionKind):
            raise HarnessError(
                f"{reference} has the action {kind!r}, which is no powercut.ActionKind"
            )
        name: object = kind.name
        if not isinstance(name, str):
            raise HarnessError(
                f"{reference} has an action with the name {name!r}, which is no text"
            )
        weight: object = kind.weight
        if not isinstance(weight, int) or weight < 1:
            raise HarnessError(
                f"{reference} has the action {kind.name!r} of weight {kind.weight!r}; a weight is "
                "a whole number from 1"
            )
        for member, parameters in _MEMBERS.items():
            beginning = f"{reference} has {member} of action {kind.name!r}, which"
            _must_run(beginning, getattr(kind, member), *parameters)
        if kind.name in DISTURBANCES:
            raise HarnessError(
                f"{reference} has an action with the name {kind.name!r}, which is one of "
                f"powercut ({', '.join(DISTURBANCES)}); give it another"
            )
        if kind.name in names:
            raise HarnessError(
                f"{reference} has two actions with the name {kind.name!r}; give each its own"
            )
        names.add(kind.name)
