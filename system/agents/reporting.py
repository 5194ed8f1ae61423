"""Delivery of the reports of ``state.db``: each becomes a message in a log."""

from __future__ import annotations

from system.agents.dispatcher import Dispatcher
from system.agents.message import RUNTIME, USER, USER_SESSION, Message, MessageKind


async def deliver_reports(dispatcher: Dispatcher) -> None:
    """Write the messages of new reports; because of their ids a repetition changes nothing.

    A report to an agent that cannot be read in this lifetime waits for a later one.
    """
    orchestrator = dispatcher.orchestrator
    stores = orchestrator.durable.stores
    if stores is None or not stores.reports.has_waiting:
        return
    for report in stores.reports.take():
        is_to_user = report.session_id is None
        agent = orchestrator.sessions.get(report.session_id or USER_SESSION)
        if agent is None or not agent.alive:
            continue
        message = Message(
            report.message_id, RUNTIME, USER if is_to_user else agent.agent_id,
            MessageKind.SYSTEM if is_to_user else MessageKind.ACTIVITY, report.payload,
            orchestrator.now(),
        )  # fmt: skip
        dispatcher.enqueue(agent, message)
    await dispatcher.dispatch()
