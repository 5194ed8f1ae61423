"""Mutants of triggers in turns: lost, run twice, never run, or shown and not settled."""

from __future__ import annotations

from oracles.runtime.violations import PresentedMismatch, UnsettledTrigger
from oracles.violation import Duplicated, Starved
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

durable_outboxes_are_not_applied = Mutant(
    "a boot does not apply the outboxes of durable lines to state.db",
    "runtime-durable",
    (Duplicated, UnsettledTrigger),
    (
        SourcePatch(
            "system.recovery.apply_outboxes",
            "if turn.has_state_entries and seq > agent.applied:",
            "if turn.has_state_entries and seq > agent.applied < 0:",
        ),
    ),
)

interrupted_triggers_stay_claimed = Mutant(
    "a boot does not give back the triggers of interrupted turns",
    "runtime-durable",
    (UnsettledTrigger,),
    (
        SourcePatch(
            "system.recovery.apply_outboxes",
            "recovered = stores.recover(transaction, sessions.is_served)",
            "recovered = stores.recover(transaction, lambda _: False)",
        ),
    ),
)

line_does_not_name_its_trigger = Mutant(
    "the line of a turn does not name the trigger that the turn has handled",
    "runtime-durable",
    (PresentedMismatch,),
    (
        SourcePatch(
            "system.agents.turns",
            "tools.draft.trigger_id = trigger.trigger_id if trigger else None",
            "",
        ),
    ),
)

due_trigger_wakes_nothing = Mutant(
    "the timer is not armed when a trigger is emitted or fails",
    "runtime-durable",
    (Starved,),
    (
        SourcePatch(
            "system.agents.durable_work",
            """
            if self.on_change is not None:
                self.on_change()
            """,
            "pass",
        ),
    ),
)

provider_failure_keeps_the_claim = Mutant(
    "a trigger whose turn has failed is not given back",
    "runtime-durable",
    (Starved,),
    (
        SourcePatch(
            "system.agents.turns",
            """
            if trigger is not None and not agent.log.stopped:
                await give_up_trigger(durable, trigger, failure)
            """,
            "",
        ),
    ),
)

routed_triggers_wait_for_ever = Mutant(
    "a trigger without a session is not routed when an agent is created or ends",
    "runtime-durable",
    (Starved,),
    (
        SourcePatch(
            "system.agents.feeder",
            "self._routing.begin()",
            "continue",
        ),
    ),
)
