"""The refusals and reports of a runtime that are right although no fault is in force."""

from __future__ import annotations

from collections.abc import Collection

from oracles.violation import FalseAlarm
from system.durable.errors import NoRecipient, StateStopped
from system.errors import AgentStopped, HasChildren, LogStopped, NameTaken, UnknownAgent
from system.ports import ProviderError
from system.recovery.recovery_report import RecoveryReport
from system.runtime import Runtime


def check_report(report: RecoveryReport) -> None:
    """Raise ``FalseAlarm`` if ``report`` names damage that crashes alone cannot cause."""
    damaged = [damage for damage in report.damaged if not damage.tail]
    if damaged or report.missing or report.problems or report.detached or report.vanished:
        raise FalseAlarm("recovery reports damage that no crash can do", report=report)


def is_stopped(runtime: Runtime) -> bool:
    """Return whether any part of the runtime is stopped until the next boot."""
    view = runtime.view()
    return bool(view.user_stopped or view.state_stopped or view.in_doubt) or any(
        agent.stopped for agent in view.agents
    )


def is_plausible(
    refused: Exception, runtime: Runtime, taken: Collection[str], *, provider_failed: bool
) -> bool:
    """Return whether ``runtime`` had a reason to raise ``refused``.

    ``taken`` are the names that were taken when the call began, and those of abandoned creations
    that may be under way. Their agents may have ended since, or may be spawned and not created
    yet, so that the view contains neither. The target checks when it quiesces that no name stays
    taken without an agent.
    """
    view = runtime.view()
    names = {*taken, *(agent.name for agent in view.agents)}
    match refused:
        case UnknownAgent(agent_id=agent_id):
            return agent_id not in [agent.agent_id for agent in view.agents if agent.alive]
        case NameTaken(name=name):
            return name in names or runtime.is_taken(name)
        case HasChildren(children=children):
            return any(child in names or runtime.is_taken(child) for child in children.split(", "))
        case NoRecipient(session_id=session_id):
            return session_id not in [agent.session_id for agent in view.agents if agent.alive]
        case AgentStopped() | LogStopped() | StateStopped():
            return is_stopped(runtime)
        case ProviderError():
            return provider_failed
        case _:
            return False
