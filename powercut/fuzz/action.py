"""An action: one thing a machine can do, as plain JSON data; and its kind, which proposes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sim.choices import Choices

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Arguments: TypeAlias = Mapping[str, Json]

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Action:
    """``name`` is the kind's name; ``arguments`` is all that the machine needs to do it."""

    name: str
    arguments: Arguments

    def __str__(self) -> str:
        named = ", ".join(f"{name}={_short(value)}" for name, value in self.arguments.items())
        return f"{self.name}({named})"

    def kinds(self) -> str:
        """Return the name of its kind, and of the kind that it wraps, if it wraps one."""
        match self.arguments:
            case {"action": {"name": str(wrapped)}}:
                return f"{self.name} {wrapped}"
        return self.name

    def plain(self) -> dict[str, Json]:
        """Return the action as JSON data; ``of_plain`` reads it back."""
        return {"name": self.name, "arguments": self.arguments}

    @classmethod
    def of_plain(cls, plain: object) -> Action:
        """Read what ``plain`` gave; ``ValueError`` says what is not an action."""
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
    """Say that there is no precondition."""
    return True


@dataclass(frozen=True, slots=True)
class ActionKind:
    """One kind of action.

    ``weight`` is its share among the kinds that are ``ready``; ``propose`` chooses the
    arguments; ``perform`` carries them out and returns the outcome in a few words.
    """

    name: str
    weight: int
    perform: Callable[[Arguments], str]
    propose: Callable[[Choices], Arguments] = no_arguments
    ready: Callable[[], bool] = always


def possible_now(kinds: Iterable[ActionKind]) -> list[ActionKind]:
    """Return those kinds that are ready; a question that several ask is asked once."""
    answers: dict[Callable[[], bool], bool] = {}
    possible = []
    for kind in kinds:
        ready = kind.ready
        if ready not in answers:
            answers[ready] = ready()
        if answers[ready]:
            possible.append(kind)
    return possible


class KindChoices(Choices):
    """Choices that are told which kinds they choose among, and need not go by their weights."""

    __slots__ = ()

    def kind(self, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
        """Choose one of ``kinds``."""
        raise NotImplementedError


def weighted(choices: Choices, label: str, kinds: Sequence[ActionKind]) -> ActionKind:
    """Choose one of ``kinds`` by weight; the first is the simplest."""
    if isinstance(choices, KindChoices):
        return choices.kind(label, kinds)
    place = choices.integer(label, 1, sum(kind.weight for kind in kinds))
    for kind in kinds:
        place -= kind.weight
        if place <= 0:
            return kind
    raise AssertionError("weights are positive")


def place_of(chosen: ActionKind, kinds: Sequence[ActionKind]) -> int:
    """Return an answer with which ``weighted`` chooses this one of ``kinds``: the simplest."""
    before = kinds[: next(number for number, kind in enumerate(kinds) if kind is chosen)]
    return 1 + sum(kind.weight for kind in before)
