"""Applying the outboxes of turn lines to ``state.db``, in one transaction for each line.

A running system and pass 7 of a recovery compute the same outbox from the same line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from system.agents.agent import Agent
from system.agents.orchestrator import Orchestrator
from system.agents.turn_complete import Reminder, TurnComplete
from system.durable.activity import Intent
from system.durable.producers import REMINDER
from system.durable.seconds import SECOND_NS, seconds_of
from system.durable.state import Transaction
from system.durable.state_outbox import StateOutbox
from system.durable.task import Checkpoint
from system.durable.trigger import TriggerSpec
from system.ports import Action, SideEffectClass


async def apply_outbox(
    orchestrator: Orchestrator, agent: Agent, turn: TurnComplete, seq: int
) -> None:
    """Apply the outbox of the durable line ``seq`` of an agent, then perform its activities.

    If the disk refuses, the outbox waits in memory, and no trigger is claimed before it is applied;
    the next boot applies it at the latest.
    """
    durable = orchestrator.durable
    outbox = state_outbox_of(durable.actions, agent, turn, seq)
    agent.pass_tasks(turn.work.tasks)

    def apply(transaction: Transaction) -> None:
        assert durable.stores is not None
        durable.stores.apply(transaction, outbox)
        transaction.after_commit(lambda: agent.pass_applied(seq))
        keys = [intent.key for intent in outbox.intents]
        transaction.after_commit(lambda: orchestrator.activities.begin(keys))

    await durable.settle(apply)


async def end_durable_work(orchestrator: Orchestrator, agent: Agent) -> None:
    """End the triggers, schedules and tasks of an agent that has ended."""
    durable, session_id = orchestrator.durable, agent.session_id
    stores = durable.stores
    if stores is not None:
        await durable.settle(lambda each: stores.end_session(each, session_id))


def state_outbox_of(
    actions: Mapping[str, Action], agent: Agent, turn: TurnComplete, seq: int
) -> StateOutbox:
    """Return the outbox of a turn line for ``state.db``; ``actions`` are the known ones."""
    work, session_id = turn.work, agent.session_id
    reminders = [each for each in turn.reminders if each.reminder_id not in turn.cancelled]
    return StateOutbox(
        session_id,
        seq,
        turn.trigger_id,
        superseded=tuple(turn.cancelled),
        emitted=(
            *((each.reminder_id, reminder_spec(each, session_id)) for each in reminders),
            *((each.trigger_id, each.spec(session_id)) for each in work.emitted),
        ),
        scheduled=tuple(
            [(each.schedule_id, each.schedule(session_id)) for each in work.scheduled]
        ),
        unscheduled=tuple(work.unscheduled),
        checkpoints=tuple(
            [
                Checkpoint(
                    each.task_id, session_id, each.last_seq, each.status, each.todos, each.events,
                    turn.turn_id,
                )
                for each in work.tasks
            ]
        ),
        intents=tuple(
            [
                Intent(
                    each.key, _action(actions.get(each.action), each.action), each.arguments,
                    session_id, each.task_id, turn.turn_id,
                )
                for each in work.activities
            ]
        ),
    )  # fmt: skip


def reminder_spec(reminder: Reminder, session_id: str) -> TriggerSpec:
    """Return the trigger of a reminder; its id is that of the reminder."""
    return TriggerSpec(
        REMINDER.source, reminder.payload, None, session_id, seconds_of(reminder.due_ns),
        f"{REMINDER.prefix}:{reminder.reminder_id}",
    )  # fmt: skip


def _action(known: Action | None, name: str) -> Action:
    """Return the action of an entry; an action that is not registered now is refused later."""
    if known is None:
        return Action(
            name, SideEffectClass.IRREVERSIBLE, provider_dedup=False, timeout_ns=SECOND_NS
        )
    return replace(known, side_effect=SideEffectClass.IRREVERSIBLE)
