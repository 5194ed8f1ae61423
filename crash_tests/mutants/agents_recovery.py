"""Recoveries that forget or give up: holes R22, and parts of R6 and R21."""

from __future__ import annotations

from crash_tests.mutants.runtime_parts import RuntimeParts
from oracles.runtime.violations import BrokenTree, LateReminder, LostControl, LostNotice
from oracles.violation import Garbage, NotContained, OutOfSync, Starved, UnreadableAfterCrash
from system.agents.history import History
from system.recovery.recovery import Recovery
from system.sessions.session_store import SessionStore
from system.storage.event_log import EventLog


class PermitsForgotten(Recovery):
    """R6: a permit to run one turn is logged, and never restored."""

    def _folded(self, session_id: str, log: EventLog) -> History:
        history = super()._folded(session_id, log)
        history.permits = 0
        return history


class RemindersForgotten(Recovery):
    """R21: reminders are in memory alone."""

    def _folded(self, session_id: str, log: EventLog) -> History:
        history = super()._folded(session_id, log)
        history.reminders.clear()
        return history


class SubscriptionsForgotten(Recovery):
    """R21: subscriptions are in memory alone."""

    def _folded(self, session_id: str, log: EventLog) -> History:
        history = super()._folded(session_id, log)
        history.subscriptions.clear()
        return history


class HoardingStore(SessionStore):
    """R21: a session that never came to be is never collected."""

    def remove(self, session_id: str) -> None:
        """Do nothing."""


class FragileRecovery(Recovery):
    """R22: one agent that the tree does not take ends the recovery of all."""

    def _placed(self, session_id: str, parent_id: str | None) -> None:
        facts = self._histories[session_id].agent
        if facts is not None and facts.name in self.orchestrator.tree.names.values():
            raise ValueError(f"there is an agent called {facts.name!r} already")
        super()._placed(session_id, parent_id)


permits_are_not_restored = RuntimeParts(recovery=PermitsForgotten).mutant(
    "a permit is logged and never restored", OutOfSync, LostControl, Starved
)
reminders_are_not_restored = RuntimeParts(recovery=RemindersForgotten).mutant(
    "reminders are volatile", LateReminder, OutOfSync
)
subscriptions_are_not_restored = RuntimeParts(recovery=SubscriptionsForgotten).mutant(
    "subscriptions are volatile", LostNotice, OutOfSync
)
orphans_are_never_collected = RuntimeParts(store=HoardingStore).mutant(
    "what is left of a creation is never collected", BrokenTree, Garbage
)
one_bad_agent_stops_all = RuntimeParts(recovery=FragileRecovery).mutant(
    "one agent that the tree refuses ends the recovery", UnreadableAfterCrash, NotContained
)
