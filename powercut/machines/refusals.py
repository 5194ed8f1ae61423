"""Which refusals of a runtime have a reason, when no fault is on."""

from __future__ import annotations

from system.errors import AgentStopped, HasChildren, LogStopped, NameTaken, UnknownAgent
from system.ports import ProviderError
from system.runtime import Runtime


def is_stopped(runtime: Runtime) -> bool:
    """Whether anything is stopped until the next boot."""
    view = runtime.view()
    return bool(view.user_stopped or view.unborn) or any(look.stopped for look in view.agents)


def is_plausible(refused: Exception, runtime: Runtime, *, provider_was_ill: bool) -> bool:
    """Whether ``runtime`` has a reason to refuse with ``refused`` at this moment.

    A name may be taken by an agent that is promised and not born: then nobody is shown
    who has it. When all is quiet the machine sees to it that no such name is left.
    """
    match refused:
        case UnknownAgent():
            return True
        case NameTaken(name=name):
            return runtime.is_taken(name)
        case HasChildren(children=children):
            return any(runtime.is_taken(name) for name in children.split(", "))
        case AgentStopped() | LogStopped():
            return is_stopped(runtime)
        case ProviderError():
            return provider_was_ill
        case _:
            return False
