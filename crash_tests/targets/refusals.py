"""Which refusals of a runtime have a reason, when no fault is on."""

from __future__ import annotations

from collections.abc import Collection

from system.errors import AgentStopped, HasChildren, LogStopped, NameTaken, UnknownAgent
from system.ports import ProviderError
from system.runtime import Runtime


def is_stopped(runtime: Runtime) -> bool:
    """Whether anything is stopped until the next boot."""
    view = runtime.view()
    return bool(view.user_stopped or view.in_doubt) or any(look.stopped for look in view.agents)


def is_plausible(
    refused: Exception, runtime: Runtime, taken: Collection[str], *, provider_failed: bool
) -> bool:
    """Whether ``runtime`` had a reason to refuse with ``refused``.

    ``taken`` are the names that somebody had when the call began. Who had one meanwhile may
    have ended by now, or was promised and is not born: then nobody is shown who has it. When
    all is quiet the machine sees to it that no name is left without an agent.
    """
    names = {*taken, *(look.name for look in runtime.view().agents)}
    match refused:
        case UnknownAgent(agent_id=agent_id):
            living = [look.agent_id for look in runtime.view().agents if look.alive]
            return agent_id not in living
        case NameTaken(name=name):
            return name in names or runtime.is_taken(name)
        case HasChildren(children=children):
            return any(child in names or runtime.is_taken(child) for child in children.split(", "))
        case AgentStopped() | LogStopped():
            return is_stopped(runtime)
        case ProviderError():
            return provider_failed
        case _:
            return False
