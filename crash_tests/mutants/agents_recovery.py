"""Recoveries that lose state or give up: holes R22, and parts of R6 and R21."""

from __future__ import annotations

from collections.abc import Callable

from crash_tests.mutants.runtime_parts import RuntimeParts
from oracles.runtime.violations import BrokenTree, LateReminder, LostControl, LostNotice
from oracles.violation import Garbage, NotContained, OutOfSync, Starved, UnreadableAfterCrash
from system.agents.history import History
from system.recovery.apply_logs import apply_logs
from system.recovery.place_agents import place_agents
from system.recovery.recovery import PASSES, Pass
from system.recovery.root_recovery import RootRecovery
from system.sessions.session_store import SessionStore


def _with(right: Pass, wrong: Pass) -> tuple[Pass, ...]:
    """Return the passes of recovery with one replaced."""
    return tuple(wrong if recovery_pass is right else recovery_pass for recovery_pass in PASSES)


def _losing(lose: Callable[[History], None]) -> tuple[Pass, ...]:
    """Return passes that lose a part of every history."""

    def apply_and_lose(recovery: RootRecovery) -> None:
        apply_logs(recovery)
        for history in recovery.histories.values():
            lose(history)

    return _with(apply_logs, apply_and_lose)


def _lose_permits(history: History) -> None:
    """R6: a permit to run one turn is logged, and never restored."""
    history.permits = 0


def _lose_reminders(history: History) -> None:
    """R21: reminders are in memory alone."""
    history.reminders.clear()


def _lose_subscriptions(history: History) -> None:
    """R21: subscriptions are in memory alone."""
    history.subscriptions.clear()


class HoardingStore(SessionStore):
    """R21: a session that never became an agent is never removed."""

    def remove(self, session_id: str) -> None:
        """Do nothing."""


def _place_distinct_names(recovery: RootRecovery) -> None:
    """R22: one agent that the tree refuses ends the recovery of all."""
    histories = recovery.histories.values()
    names = [history.agent.name for history in histories if history.agent is not None]
    if len(set(names)) < len(names):
        raise ValueError(f"two agents have one name: names={sorted(names)}")
    place_agents(recovery)


permits_are_not_restored = RuntimeParts(passes=_losing(_lose_permits)).mutant(
    "a permit is logged and never restored", OutOfSync, LostControl, Starved
)
reminders_are_not_restored = RuntimeParts(passes=_losing(_lose_reminders)).mutant(
    "reminders are volatile", LateReminder, OutOfSync
)
subscriptions_are_not_restored = RuntimeParts(passes=_losing(_lose_subscriptions)).mutant(
    "subscriptions are volatile", LostNotice, OutOfSync
)
orphans_are_never_collected = RuntimeParts(store=HoardingStore).mutant(
    "what is left of a creation is never collected", BrokenTree, Garbage
)
one_bad_agent_stops_all = RuntimeParts(passes=_with(place_agents, _place_distinct_names)).mutant(
    "one agent that the tree refuses ends the recovery", UnreadableAfterCrash, NotContained
)
