"""A target by its tag and its import string: what the registry knows and a campaign runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from oracles.marks import TORN
from powercut.fuzz.target import AnyTarget, MakeTarget, Target
from powercut.reference import load
from sim.choices import PlainChoices
from sim.disk.crash.persistence import PersistenceModel
from sim.errors import HarnessError
from sim.world import World


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """One target of a campaign, as plain values that go to worker processes.

    ``reference`` is ``module:object``, a callable that returns a new ``Target``. ``marks`` are
    those that a campaign under ``posix`` can reach; a campaign of a minute may miss the
    ``rare`` ones. ``turn`` is the number of steps the target gets in each turn of a campaign.
    """

    tag: str
    reference: str
    marks: tuple[str, ...] = ()
    turn: int = 300
    rare: tuple[str, ...] = ()

    @classmethod
    def of(cls, tag: str, reference: str) -> TargetEntry:
        """Import the target, make one and read its marks.

        Raises ``HarnessError`` in one sentence if it cannot be imported or made, is not a
        target, or has no actions.
        """
        target = _checked(reference, cls(tag, reference).make_target)
        return cls(
            tag,
            reference,
            tuple(target.expected_marks),
            target.turn_steps,
            tuple(target.rare_marks),
        )

    def make_target(self) -> AnyTarget:
        """Return a new target under this tag."""
        make = load(self.reference)
        if not callable(make):
            raise HarnessError(f"{self.reference} is not callable: {make!r}")
        target = make()
        if not isinstance(target, Target):
            raise HarnessError(
                f"{self.reference} returns {target!r}, which does not derive from powercut.Target"
            )
        target.tag = self.tag
        return target

    def under(self, model: PersistenceModel) -> TargetEntry:
        """Return this target with the marks that a campaign under ``model`` can reach."""
        if model.torn_units:
            return self
        return replace(self, marks=tuple(mark for mark in self.marks if mark != TORN))


def _checked(reference: str, make_target: MakeTarget) -> AnyTarget:
    try:
        target = make_target()
        target.attach(World(target.make_host, PlainChoices()))
        actions = target.actions()
    except HarnessError:
        raise
    except Exception as failure:
        raise HarnessError(
            f"{reference} raises {type(failure).__name__} when the target is made: {failure}"
        ) from failure
    if not actions:
        raise HarnessError(f"{reference} has no actions: its actions() returns none of them")
    return target
