"""A target: one part of the system under test, its shadow, and what can be done to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

from oracles.marks import Marks
from powercut.fuzz.action import Kind
from sim.choices import Choices
from sim.world import Boot, World

H = TypeVar("H")


class Target(Protocol[H]):
    """What a machine acts on.

    ``tag`` is the short name of the target in reproducers and on the command line.
    ``marks`` collects the states that it sees. ``fault_plan`` is set by the machine, as
    it prints: while it is not empty, an ``OSError`` out of the system proves nothing.
    ``volatile`` are the paths of files that every boot changes, like the count of boots.
    A ``calm`` target is neither crashed nor given faults by its machine.
    ``features`` are labels of its choices of which a run may leave out some answers, and
    how many answers each has.
    ``actions_per_crash`` is how many actions pass undisturbed for one that is crashed: more
    where a crash means little before much has happened.
    A part of the system that has no agents keeps the methods that are written out here.
    """

    tag: str
    marks: Marks
    fault_plan: str
    volatile: frozenset[str] = frozenset()
    actions_per_crash: int = 1
    features: Mapping[str, int] = MappingProxyType({})
    calm: bool = False

    @property
    def fault_rules(self) -> Sequence[str]:
        """Return fault rules as they print, beside those of ``disk_faults``."""
        ...

    def kinds(self) -> Sequence[Kind]:
        """Return its kinds of action, the simplest first."""
        ...

    def enter(self, world: World[H]) -> None:
        """Learn, once, in which world all lifetimes will be."""
        del world

    def make_host(self, boot: Boot) -> H:
        """Build the door to the machine through which the system runs in one lifetime."""
        ...

    def boot(self, host: H) -> None:
        """Start a lifetime on ``host``: open and recover; whatever that raises goes through."""
        ...

    def settle(self) -> None:
        """Take the first look after a recovery; raise a ``Violation``."""
        ...

    def step(self, choices: Choices) -> None:
        """Ask, before a step, what the world itself needs to know: its schedule."""
        del choices

    def rest(self) -> None:
        """All faults are lifted: let everything accepted be done; a ``Violation`` if it is not."""
        return


AnyTarget: TypeAlias = Target[Any]
MakeTarget: TypeAlias = Callable[[], AnyTarget]
