"""Actions as plain JSON data, and the kinds of action that propose and perform them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from operator import index
from typing import Final, ParamSpec, SupportsIndex, TypeAlias, TypeVar

from powercut.fuzz.target_mistake import TargetMistake
from powercut.place import defined_at, raised_at
from sim.choices import Choices, NothingToChoose
from sim.errors import HarnessError, described

P = ParamSpec("P")
T = TypeVar("T")

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Arguments: TypeAlias = Mapping[str, Json]

FAULT_ON: Final = "fault_on"
FAULT_OFF: Final = "fault_off"
WITH_FAULT: Final = "with_fault"
RECOVER_TWICE: Final = "recover_twice"
CRASH_AND_RECOVER: Final = "crash_and_recover"
DISTURBANCES: Final = (FAULT_ON, FAULT_OFF, WITH_FAULT, RECOVER_TWICE, CRASH_AND_RECOVER)
"""The names of the kinds of action that a run adds to those of its target."""

_WRAPPING: Final = (WITH_FAULT, CRASH_AND_RECOVER)

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Action:
    """One action: the name of its kind, and all arguments that performing it needs."""

    name: str
    arguments: Arguments

    def __str__(self) -> str:
        named = ", ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{self.name}({named})"

    @property
    def wrapped(self) -> Action | None:
        """The action of the target that it crashes or faults, if it wraps one.

        ``ValueError`` if that was read from a file and is none.
        """
        return Action.of_plain(self.arguments.get("action")) if self.name in _WRAPPING else None

    @property
    def fault_plan(self) -> str | None:
        """The fault plan that it puts in force, if it does so."""
        return str(self.arguments["plan"]) if self.name in {FAULT_ON, WITH_FAULT} else None

    @property
    def kind_names(self) -> tuple[str, ...]:
        """The name of its kind, and that of the action that it wraps, if it wraps one."""
        wrapped = self.wrapped
        return (self.name,) if wrapped is None else (self.name, wrapped.name)

    def around(self, other: Action) -> Action:
        """Return ``other``, one of the same kind, with the crashes or the faults of this one."""
        if self.wrapped is not None:
            return Action(self.name, {**self.arguments, "action": other.arguments["action"]})
        return self if self.name in DISTURBANCES else other

    def plain(self) -> dict[str, Json]:
        """Return the action as JSON data; ``of_plain`` reads it back."""
        return {"name": self.name, "arguments": self.arguments}

    @classmethod
    def of_plain(cls, plain: object) -> Action:
        """Read the result of ``plain``; ``ValueError`` for anything else."""
        match plain:
            case {"name": str(name), "arguments": Mapping() as arguments}:
                return cls(name, arguments)
        raise ValueError(f"not an action: {plain!r}")


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=True)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}… {len(text)} characters"


def no_arguments(_choices: Choices) -> Arguments:
    """Propose no arguments."""
    return {}


def always() -> bool:
    """Return True: the action has no precondition."""
    return True


def prepared(member: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of a target that prepares a step, such as ``propose``.

    Raises ``TargetMistake`` if it fails: the step has not begun, so no run can repeat the failure.
    """
    try:
        return function(*args, **kwargs)
    except (Exception, SystemExit) as failure:
        if isinstance(failure, HarnessError) and not isinstance(failure, NothingToChoose):
            raise
        raise TargetMistake(
            f"{member} raises {' '.join(described(failure).split())}"
            f"{raised_at(failure.__traceback__)}; it prepares a step, and must return in every "
            "state of the system: only actions, recoveries and checks may fail"
        ) from failure


@dataclass(frozen=True, slots=True, eq=False)
class ActionKind:
    """One kind of action of a target; two of them are never equal.

    ``weight`` is its share among the kinds that are ``ready``. ``perform`` takes the
    arguments, acts on the system, and returns the outcome in a few words, such as ``stored``.
    ``propose`` chooses the arguments, as JSON data. ``ready`` is the precondition::

        ActionKind("put", 4, self._put, lambda choices: {"value": choices.integer("value", 0, 9)})
    """

    name: str
    weight: int
    perform: Callable[[Arguments], str]
    propose: Callable[[Choices], Arguments] = no_arguments
    ready: Callable[[], bool] = always

    def __post_init__(self) -> None:
        """Take a weight of another type of whole numbers, such as NumPy's, as an ``int``."""
        with suppress(TypeError):
            object.__setattr__(self, "weight", index(self.weight))

    def is_ready(self) -> bool:
        """Return whether the precondition holds; raise ``TargetMistake`` if it fails."""
        return prepared(f"ready of action {self.name!r}", self.ready)

    def performed(self, outcome: object) -> str:
        """Return what ``perform`` has returned; ``TargetMistake`` if it is not a few words."""
        if isinstance(outcome, str) and outcome:
            return outcome
        raise TargetMistake(
            f"action {self.name!r} returned {outcome!r:.100}, and must return its outcome in a few "
            f"words, such as 'stored', for reports and reproducers{defined_at(self.perform)}"
        )

    def proposed(self, choices: Choices) -> Action:
        """Choose the arguments; raise ``TargetMistake`` if they are not JSON data."""
        arguments = prepared(f"propose of action {self.name!r}", self.propose, choices)
        with suppress(TypeError):
            plain = _json_of(arguments)
            if isinstance(plain, dict):
                return Action(self.name, plain)
        raise TargetMistake(
            f"the arguments of action {self.name!r} are {arguments!r:.100}, and must be a dict of "
            "JSON data, which a reproducer can keep: None, bool, int, finite float, str, lists, "
            f"and dicts with strings as keys{defined_at(self.propose)}"
        )


def _json_of(value: object) -> Json:
    """Return JSON data as a reproducer reads it back; ``TypeError`` for anything else.

    A tuple becomes a list, and a whole number of another type, such as NumPy's, an ``int``.
    """
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError
        return {key: _json_of(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_json_of(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        raise TypeError
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, SupportsIndex):
        return index(value)
    raise TypeError


def possible_now(kinds: Iterable[ActionKind]) -> list[ActionKind]:
    """Return the kinds that are ready; a precondition that several share is called once."""
    answers: dict[Callable[[], bool], bool] = {}
    possible = []
    for kind in kinds:
        ready = kind.ready
        if ready not in answers:
            answers[ready] = kind.is_ready()
        if answers[ready]:
            possible.append(kind)
    return possible


class KindChoices(Choices):
    """Choices that choose among kinds of action themselves, instead of by weight."""

    __slots__ = ()

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Choose one of ``kinds``."""
        raise NotImplementedError


def weighted(choices: Choices, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
    """Choose one of ``kinds`` by weight; the first is the simplest."""
    if isinstance(choices, KindChoices):
        return choices.kind(label, kinds)
    assert all(kind.weight > 0 for kind in kinds)
    number = choices.integer(label, 1, sum(kind.weight for kind in kinds))
    for kind in kinds:
        number -= kind.weight
        if number <= 0:
            return kind
    raise AssertionError("weights are positive")


def number_of(chosen: ActionKind, kinds: Sequence[ActionKind]) -> int:
    """Return the lowest answer with which ``weighted`` chooses ``chosen``."""
    before = kinds[: next(number for number, kind in enumerate(kinds) if kind is chosen)]
    return 1 + sum(kind.weight for kind in before)
