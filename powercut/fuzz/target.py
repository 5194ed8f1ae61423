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

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

from oracles.marks import KILLED, POWER_CUT_LOST, Marks
from powercut.fuzz.action import ActionKind
from sim.choices import Choices
from sim.disk.calls.process import Process
from sim.world import Boot, World

H = TypeVar("H")


class Target(ABC, Generic[H]):
    """A system under test, the actions that can be done to it, and the checks of its state.

    Each run creates one target and calls ``attach`` once. Each lifetime of the run calls
    ``make_host``, ``recover`` and ``check_recovered``, and then performs actions until it is
    crashed. ``quiesce`` is called once, at the end of the run. Every check reports a broken
    property by raising a ``Violation``.

    ``tag`` names the target in reproducers and on the command line.

    ``fault_plan`` is set by the engine: the fault plan in force, as it prints, or the empty
    string. While it is not empty, an ``OSError`` out of the system is no violation.

    ``fault_rules`` are fault rules in printed form, which the run injects beside the usual
    ones. ``crash_free`` targets are neither crashed nor given faults.

    ``changed_by_boot`` are the paths of files that every boot rewrites, such as a boot
    counter; a second recovery must leave all others unchanged.

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
    fault_rules: Sequence[str] = ()
    crash_free: bool = False
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
        ``UnreadableAfterCrash`` violation, unless a fault plan is in force.
        """

    def attach(self, world: World[H]) -> None:
        """Receive the simulated machine on which all lifetimes of the run take place."""
        del world

    def check_recovered(self) -> None:
        """Check the state that a recovery has left, before any action."""
        return

    def before_step(self, choices: Choices) -> None:
        """Choose, before each step, what the simulated machine itself needs: its schedule."""
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
